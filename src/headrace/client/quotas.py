"""Quotas of users, client ids and addresses, over the wire (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headrace.client.agreement import until_all_know
from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.client.refusals import refusal
from headrace.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from headrace.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from headrace.protocol.messages.describe_client_quotas_request import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from headrace.protocol.messages.describe_client_quotas_response import DescribeClientQuotasResponse

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
_EXACT, _DEFAULT = 0, 1

Entity = tuple[tuple[str, str | None], ...]
"""(type, name) of each part, sorted; None is the default of that type."""


class Quota(NamedTuple):
    entity: Entity
    values: Mapping[str, float]

    @property
    def words(self) -> str:
        return words_of(self.entity)


def words_of(entity: Entity) -> str:
    return ", ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in entity)


async def describe_quotas(cluster: Cluster, parts: Entity = (), *, strict: bool = False) -> list[Quota]:
    """Of the entities that have all these parts; `strict`: and no others."""
    return await cluster.retried(lambda: _described(cluster, parts, strict))


async def refused_quotas(
    cluster: Cluster, changes: Sequence[tuple[Entity, Mapping[str, float | None]]]
) -> list[Refused]:
    """Which of these changes would be refused, and why. Nothing is changed."""
    if not changes:
        return []
    request = AlterClientQuotasRequest(
        entries=[_entry(entity, values) for entity, values in changes], validate_only=True
    )
    reply = await cluster.retried(lambda: cluster.ask_controller(request, AlterClientQuotasResponse))
    return [
        refusal(result.error_code, f"quota of {words_of(entity)}", result.error_message)
        for (entity, _), result in zip(changes, reply.entries, strict=True)
        if result.error_code
    ]


def _entry(entity: Entity, changes: Mapping[str, float | None]) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in changes.items()],
    )


async def alter_quotas(cluster: Cluster, entity: Entity, changes: Mapping[str, float | None]) -> None:
    """None removes a quota."""
    request = AlterClientQuotasRequest(entries=[_entry(entity, changes)])

    async def attempt() -> None:
        reply = await cluster.ask_controller(request, AlterClientQuotasResponse)
        for result in reply.entries:
            if result.error_code:
                raise refusal(result.error_code, f"quota of {words_of(entity)}", result.error_message)

    await cluster.retried(attempt)

    async def knows(broker_id: int) -> bool:
        found = await _described(cluster, entity, True, broker_id)
        values = found[0].values if found else {}
        return all(values.get(key) == value for key, value in changes.items())

    await until_all_know(cluster, knows)


async def _described(
    cluster: Cluster, parts: Entity, strict: bool, broker_id: int | None = None
) -> list[Quota]:
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
            for kind, name in parts
        ],
        strict=strict,
    )
    if broker_id is None:
        reply = await cluster.ask_controller(request, DescribeClientQuotasResponse)
    else:
        reply = await cluster.ask_broker(broker_id, request, DescribeClientQuotasResponse)
    if reply.error_code:
        raise refusal(reply.error_code, "quotas", reply.error_message)
    found = [
        Quota(
            tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)),
            {value.key: value.value for value in entry.values},
        )
        for entry in reply.entries or ()
    ]
    return sorted(found, key=lambda quota: [(kind, name or "") for kind, name in quota.entity])
