"""A plan over the wire: the brokers are asked whether they would do it, and then to do it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from headrace.client import acls, admin, many_topics, moves, quotas, users
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused
from headrace.client.many_topics import NewTopic
from headrace.client.throttles import Move
from headrace.client.topics import describe_topics
from headrace.config.secret import Secret
from headrace.core.ids import TopicPartition
from headrace.desired.changes import QuotaChange, TopicChange, TopicCreation, UserChange
from headrace.desired.link_wire import LinkAdministration, link_objections
from headrace.desired.plan import Plan
from headrace.desired.services import NO_SERVICES, ServiceAdministration, Services
from headrace.protocol.error_codes import ErrorCode
from headrace.security.acl import AclRule

V = TypeVar("V")
W = TypeVar("W")


async def objections(cluster: Cluster, plan: Plan) -> list[str]:
    """What brokers, and the sources of links, would refuse of a plan. Nothing is changed."""
    changed = [each for each in plan.changes if isinstance(each, TopicChange)]
    of_links, copies = await link_objections(cluster, plan)
    created = {**copies, **{each.name: _new_topic(each) for each in _creations(plan)}}
    settings: dict[str, Mapping[str, str | None]] = {
        each.name: each.new_settings for each in changed if each.settings
    }

    async def create(topics: Mapping[str, NewTopic]) -> dict[str, Refused]:
        return await many_topics.create_topics(cluster, topics.values(), validate_only=True)

    async def alter(topics: Mapping[str, Mapping[str, str | None]]) -> dict[str, Refused]:
        return await many_topics.alter_settings(cluster, topics, validate_only=True)

    said = await _by_setting(
        created, create, lambda topic: [topic._replace(settings=each) for each in _singly(topic.settings)]
    )
    said += await _by_setting(settings, alter, _singly)
    totals = {each.name: each.partitions[1] for each in changed if each.partitions is not None}
    grown = await many_topics.add_partitions(cluster, totals, validate_only=True)
    said += [(name, error) for name, error in grown.items()]
    quota = [(each.entity, each.new_values) for each in plan.changes if isinstance(each, QuotaChange)]
    refused = await quotas.refused_quotas(cluster, quota)
    of_topics = [str(error) for _, error in sorted(said, key=lambda each: each[0])]
    return [*of_topics, *of_links, *(str(error) for error in refused)]


async def _by_setting(
    wanted: Mapping[str, W],
    ask: Callable[[Mapping[str, W]], Awaitable[dict[str, Refused]]],
    singly: Callable[[W], Sequence[W]],
) -> list[tuple[str, Refused]]:
    """A broker names one setting of a topic that it refuses: each one alone tells of all of them."""
    refused = await ask(wanted)
    left = {
        name: list(singly(wanted[name]))
        for name, error in refused.items()
        if error.code == ErrorCode.INVALID_CONFIG
    }
    alone: list[tuple[str, Refused]] = []
    while left:
        alone += (await ask({name: each.pop(0) for name, each in left.items()})).items()
        left = {name: each for name, each in left.items() if each}
    explained = {name for name, _ in alone}
    return alone + [(name, error) for name, error in refused.items() if name not in explained]


def _singly(settings: Mapping[str, V]) -> list[Mapping[str, V]]:
    return [{name: value} for name, value in settings.items()]


class WireAdministration(ServiceAdministration, LinkAdministration):
    """Raises ClientFailure for the first that is refused; what was done before stays."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        throttle: int | None = None,
        tell: Callable[[object], None] = lambda _: None,
        services: Services = NO_SERVICES,
    ) -> None:
        ServiceAdministration.__init__(self, services)
        LinkAdministration.__init__(self, cluster)
        self._throttle = throttle
        self._tell = tell

    async def create_topics(self, topics: Sequence[TopicCreation]) -> None:
        refused = await many_topics.create_topics(self._cluster, map(_new_topic, topics))
        if refused and all(each.code == ErrorCode.TOPIC_ALREADY_EXISTS for each in refused.values()):
            raise ClientFailure(
                f"topic {next(iter(refused))}{_others(refused)} was made meanwhile by somebody else"
            )
        _require_none(refused)

    async def change_settings(self, topics: Sequence[TopicChange]) -> None:
        changes = {each.name: each.new_settings for each in topics}
        _require_none(await many_topics.alter_settings(self._cluster, changes))

    async def move_replicas(self, todo: Mapping[TopicPartition, Move]) -> None:
        await moves.carry_out(self._cluster, todo, bytes_per_second=self._throttle, tell=self._tell)

    async def add_partitions(self, totals: Mapping[str, int]) -> None:
        """New ones get as many replicas as the first has, so moves have to end before."""
        states = await describe_topics(self._cluster, list(totals))
        there = [TopicPartition(state.name, each.partition) for state in states for each in state.partitions]
        try:
            await moves.wait(self._cluster, there, tell=self._tell)
        except Refused as error:
            # Moves are the whole cluster's. Whoever may grow a topic and not see them does not wait.
            if error.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise
        _require_none(await many_topics.add_partitions(self._cluster, totals))

    async def delete_topics(self, names: Sequence[str]) -> None:
        for name in names:
            try:
                await admin.delete_topics(self._cluster, [name])
            except Refused as error:
                if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise

    async def change_user(self, change: UserChange, password: Secret | None) -> None:
        for mechanism, (_, iterations) in change.mechanisms.items():
            if iterations is None:
                continue
            assert password is not None
            await users.set_password(self._cluster, change.name, mechanism, password, iterations=iterations)
        known = await users.find_user(self._cluster, change.name)
        gone = [each for each, (_, new) in change.mechanisms.items() if new is None]
        gone = [each for each in gone if known is not None and each in known.iterations]
        if gone:
            await users.delete_credentials(self._cluster, change.name, gone)

    async def add_rules(self, rules: Sequence[AclRule]) -> None:
        await acls.create_acls(self._cluster, rules)

    async def remove_rules(self, rules: Sequence[AclRule]) -> None:
        await acls.delete_acls(self._cluster, rules)

    async def change_quota(self, change: QuotaChange) -> None:
        await quotas.alter_quotas(self._cluster, change.entity, change.new_values)


def _creations(plan: Plan) -> list[TopicCreation]:
    return [each for each in plan.changes if isinstance(each, TopicCreation)]


def _new_topic(topic: TopicCreation) -> NewTopic:
    return NewTopic(topic.name, topic.partitions or -1, topic.replicas or -1, topic.settings)


def _require_none(refused: Mapping[str, Refused]) -> None:
    if refused:
        first = next(iter(refused.values()))
        raise ClientFailure(f"{first}{_others(refused)}", first.hint)


def _others(refused: Mapping[str, Refused]) -> str:
    return f" (and {len(refused) - 1} others)" if len(refused) > 1 else ""
