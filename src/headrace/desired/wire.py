"""A plan over the wire: the brokers are asked whether they would do it, and then to do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from headrace.client import acls, admin, many_topics, moves, quotas, users
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused
from headrace.client.many_topics import NewTopic
from headrace.client.throttles import Move
from headrace.client.topics import describe_topics
from headrace.config.secret import Secret
from headrace.core.ids import TopicPartition
from headrace.desired.changes import QuotaChange, TopicChange, TopicCreation, UserChange
from headrace.desired.plan import Plan
from headrace.protocol.error_codes import ErrorCode
from headrace.security.acl import AclRule


async def objections(cluster: Cluster, plan: Plan) -> list[str]:
    """What the brokers would refuse of a plan's topics. Nothing is changed."""
    changed = [each for each in plan.changes if isinstance(each, TopicChange)]
    refused = await many_topics.create_topics(cluster, map(_new_topic, _creations(plan)), validate_only=True)
    settings = {each.name: each.new_settings for each in changed if each.settings}
    refused |= await many_topics.alter_settings(cluster, settings, validate_only=True)
    totals = {each.name: each.partitions[1] for each in changed if each.partitions is not None}
    refused |= await many_topics.add_partitions(cluster, totals, validate_only=True)
    return [str(error) for _, error in sorted(refused.items())]


class WireAdministration:
    """Raises ClientFailure for the first that is refused; what was done before stays."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        throttle: int | None = None,
        tell: Callable[[object], None] = lambda _: None,
    ) -> None:
        self._cluster = cluster
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
        await moves.wait(self._cluster, there, tell=self._tell)
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
