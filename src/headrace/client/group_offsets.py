"""Committed offsets of groups: read, written from outside of the group, and removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.coordinators import CoordinatorKind, results
from headrace.client.errors import ApiMissing, Refused
from headrace.client.grouping import by_topic
from headrace.client.refusals import refusal
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from headrace.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.protocol.messages.offset_delete_response import OffsetDeleteResponse
from headrace.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.protocol.messages.offset_fetch_response import OffsetFetchResponse, OffsetFetchResponseGroup

_NAMED_AT_MOST: Final = 9  # from 10 on commits and fetches name topics by id
_FIRST_WITH_GROUPS: Final = 8
_LATER: Final = frozenset(
    (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
)


class Committed(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    pending: bool = False
    """A transaction that is still open has another one, which counts once it commits."""


async def committed_offsets(
    cluster: Cluster, group_ids: Iterable[str], partitions: Iterable[TopicPartition] | None = None
) -> dict[str, dict[TopicPartition, Committed]]:
    """What each group has committed, of these partitions or of all. A group that is not there has nothing."""
    topics = None if partitions is None else by_topic(partitions)
    groups = list(group_ids)

    async def ask(
        broker_id: int, keys: list[str], *, stable: bool
    ) -> Mapping[str, OffsetFetchResponseGroup | Refused]:
        connection = await cluster.broker(broker_id)
        if connection.version_for(OffsetFetchRequest, _NAMED_AT_MOST) < _FIRST_WITH_GROUPS:
            raise ApiMissing(f"the broker at {connection.peer} is too old: it needs OffsetFetch 8 or later")
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=key, topics=_asked(topics)) for key in keys],
            require_stable=stable,
        )
        reply = await connection.request(
            request, OffsetFetchResponse, at_most=_NAMED_AT_MOST, timeout=cluster.request_timeout
        )
        return {group.group_id: _checked(group) for group in reply.groups}

    # A pending offset hides the committed one from whoever asks for stable ones: ask both ways.
    plain = await results(cluster, CoordinatorKind.GROUP, groups, lambda b, keys: ask(b, keys, stable=False))
    stable = await results(cluster, CoordinatorKind.GROUP, groups, lambda b, keys: ask(b, keys, stable=True))
    return {key: _committed(plain[key], _unstable(stable[key])) for key in plain}


def _asked(topics: Mapping[str, list[int]] | None) -> list[OffsetFetchRequestTopics] | None:
    if topics is None:
        return None
    return [
        OffsetFetchRequestTopics(name=name, partition_indexes=indexes) for name, indexes in topics.items()
    ]


def _checked(group: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup | Refused:
    if not group.error_code or group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return group
    return refusal(group.error_code, f"group {group.group_id}")


def _unstable(group: OffsetFetchResponseGroup) -> set[TopicPartition]:
    return {
        TopicPartition(topic.name, entry.partition_index)
        for topic in group.topics
        for entry in topic.partitions
        if entry.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    }


def _committed(
    group: OffsetFetchResponseGroup, unstable: set[TopicPartition]
) -> dict[TopicPartition, Committed]:
    found = {}
    for topic in group.topics:
        for entry in topic.partitions:
            partition = TopicPartition(topic.name, entry.partition_index)
            if entry.error_code:
                raise refusal(entry.error_code, f"the offset of group {group.group_id} in {partition}")
            if entry.committed_offset >= 0:
                found[partition] = Committed(
                    entry.committed_offset,
                    entry.committed_leader_epoch,
                    entry.metadata or "",
                    partition in unstable,
                )
    return found


async def commit_offsets(
    cluster: Cluster,
    group_id: str,
    offsets: Mapping[TopicPartition, int],
    metadata: Mapping[TopicPartition, str] | None = None,
) -> None:
    """Set offsets from outside. Refused while the group has members: they would not notice."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (name, index), offset in offsets.items():
        topics.setdefault(name, []).append(
            OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset,
                committed_metadata=(metadata or {}).get(TopicPartition(name, index), ""),
            )
        )
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[OffsetCommitRequestTopic(name=name, partitions=items) for name, items in topics.items()],
    )

    async def ask(broker_id: int, _keys: list[str]) -> Mapping[str, Refused | None]:
        reply = await cluster.ask_broker(broker_id, request, OffsetCommitResponse, at_most=_NAMED_AT_MOST)
        codes = {
            TopicPartition(topic.name, entry.partition_index): entry.error_code
            for topic in reply.topics
            for entry in topic.partitions
        }
        return {group_id: _first_refusal(codes, group_id)}

    await results(cluster, CoordinatorKind.GROUP, [group_id], ask)


def _first_refusal(codes: Mapping[TopicPartition, int], group_id: str) -> Refused | None:
    for partition, code in codes.items():
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION):
            # How a coordinator says that the group has members, of whom we are none.
            return refusal(ErrorCode.NON_EMPTY_GROUP, f"group {group_id}")
        if code in _LATER or code == ErrorCode.GROUP_ID_NOT_FOUND:
            return refusal(code, f"group {group_id}")
        if code:
            return refusal(code, f"the offset of group {group_id} in {partition}")
    return None


async def delete_offsets(
    cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Refused | None]:
    """None for each offset that is gone, or why it is not."""
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
            )
            for name, indexes in by_topic(partitions).items()
        ],
    )

    async def ask(
        broker_id: int, _keys: list[str]
    ) -> Mapping[str, dict[TopicPartition, Refused | None] | Refused]:
        reply = await cluster.ask_broker(broker_id, request, OffsetDeleteResponse)
        if reply.error_code:
            return {group_id: refusal(reply.error_code, f"group {group_id}")}
        return {
            group_id: {
                TopicPartition(topic.name, entry.partition_index): refusal(
                    entry.error_code, f"{topic.name}-{entry.partition_index}"
                )
                if entry.error_code
                else None
                for topic in reply.topics
                for entry in topic.partitions
            }
        }

    return (await results(cluster, CoordinatorKind.GROUP, [group_id], ask))[group_id]
