"""Links over the wire: whether source and brokers would do what a plan says of them, and doing it."""

from __future__ import annotations

from headrace.client import links
from headrace.client.cluster import Cluster
from headrace.client.configs import Resource, ResourceType, alter_configs
from headrace.client.errors import ClientFailure, Refused
from headrace.client.health import describe_cluster
from headrace.client.links import SourceTopic
from headrace.client.many_topics import NewTopic
from headrace.client.security import PLAINTEXT, ClientSecurity
from headrace.core.errors import ConfigError
from headrace.desired.changes import LinkChange, LinkCreation
from headrace.desired.links import WIRE_NAMES, Link
from headrace.desired.plan import Plan


async def link_objections(cluster: Cluster, plan: Plan) -> tuple[list[str], dict[str, NewTopic]]:
    """What would be refused of a plan's links; and the topics that would be made with them, which are not
    judged here. Nothing is changed."""
    refused: list[str] = []
    made: dict[str, NewTopic] = {}
    for change in plan.changes:
        if not isinstance(change, LinkCreation | LinkChange):
            continue
        try:
            if isinstance(change, LinkCreation):
                found = await _look(change.link)
                if found.cluster_id == (await describe_cluster(cluster)).cluster_id:
                    raise ClientFailure(f"{change.link.source} is this cluster itself")
                await _would_alter(cluster, change.name, _new_values(found, change.link))
                made[change.name] = NewTopic(
                    change.name,
                    found.partitions,
                    change.link.replicas or -1,
                    {**found.settings, **change.link.settings},
                )
            else:
                await _would_alter(cluster, change.name, _on_the_wire(change))
        except (ClientFailure, ConfigError) as error:
            hint = f"; {error.hint}" if isinstance(error, ClientFailure) and error.hint else ""
            refused.append(f"link {change.name}: {error}{hint}")
    return refused, made


def _new_values(found: SourceTopic, link: Link) -> dict[str, str | None]:
    return links.values_for(found, link.source, link.client_config, _patterns(link))


def _patterns(link: Link) -> list[str]:
    return link.groups.split(",") if link.groups else []


def _on_the_wire(change: LinkChange) -> dict[str, str | None]:
    return {WIRE_NAMES[what]: new for what, (_, new) in change.values.items()}


async def _would_alter(cluster: Cluster, name: str, values: dict[str, str | None]) -> None:
    await alter_configs(cluster, Resource(ResourceType.LINK, name), values, validate_only=True)


async def _look(link: Link) -> SourceTopic:
    """At the source, from here. The brokers look for themselves, with `client-config`."""
    security = PLAINTEXT if link.source_config is None else ClientSecurity.read(link.source_config)
    try:
        async with Cluster(link.source, client_id="headrace-cli", security=security) as source:
            return await links.look_at_source(source, link.topic)
    except Refused as error:
        raise ClientFailure(f"its source {link.source}: {error}") from None
    except ClientFailure as error:
        raise ClientFailure(
            f"its source {link.source}: {error}",
            "`source` names it; where it wants TLS or SASL, `source-config: PATH` says how",
        ) from None


class LinkAdministration:
    """Each returns when it is so, also if it was so before."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def create_link(self, creation: LinkCreation) -> None:
        """The last step gives it the state, and what is left of a creation that went no further."""
        name, link = creation.name, creation.link
        found = await _look(link)
        await links.create(
            self._cluster,
            found,
            name,
            bootstrap=link.source,
            client_config=link.client_config,
            groups=_patterns(link),
            replication_factor=link.replicas or -1,
            settings=link.settings,
        )
        there = await links.values_of(self._cluster, name)
        wanted = {**link.values, "state": link.state or links.ACTIVE}
        left = {
            wire: wanted.get(what)
            for what, wire in WIRE_NAMES.items()
            if wanted.get(what, "") != there.get(wire, "")
        }
        if left:
            await links.change(self._cluster, name, left)

    async def change_link(self, change: LinkChange) -> None:
        await links.change(self._cluster, change.name, _on_the_wire(change))

    async def delete_link(self, name: str) -> None:
        if await links.values_of(self._cluster, name):
            await links.delete(self._cluster, name)
