"""How far groups are behind, in each partition, and what holds them back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headrace.client import groups
from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.client.group_offsets import Committed, committed_offsets
from headrace.client.groups import Group, Member
from headrace.client.offsets import EARLIEST, LATEST, list_offsets
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode


class LogEnds(NamedTuple):
    first: int
    stable: int
    """Where a consumer of committed records must stop: before the first transaction that is still open."""
    high_watermark: int
    end: int
    """Of the leader's log. What lies above the high watermark is not on all replicas in sync yet."""


class PartitionLag(NamedTuple):
    partition: TopicPartition
    committed: Committed | None
    ends: LogEnds | None
    """None where the partition has no leader, or is gone."""
    member: Member | None

    @property
    def lag(self) -> int | None:
        """Of a partition without a commit it is all that is there: the group has read nothing of it for good,
        and where its consumers would begin is their own setting."""
        if self.ends is None:
            return None
        begin = self.ends.first if self.committed is None else self.committed.offset
        return max(0, self.ends.high_watermark - begin)

    @property
    def unread(self) -> int:
        """Records of a partition in which the group has committed nothing."""
        return self.lag or 0 if self.committed is None else 0

    @property
    def held(self) -> bool:
        """Whether an open transaction keeps records from consumers of committed ones."""
        return self.ends is not None and self.ends.stable < self.ends.high_watermark

    @property
    def missed(self) -> int:
        """Records that were removed before the group had read them."""
        if self.committed is None or self.ends is None:
            return 0
        return max(0, self.ends.first - self.committed.offset)


class GroupLag(NamedTuple):
    group_id: str
    group: Group | None
    """None where the coordinator cannot describe the group; its offsets are there all the same."""
    partitions: Sequence[PartitionLag]

    @property
    def state(self) -> str:
        return groups.DEAD if self.group is None else self.group.state

    @property
    def total(self) -> int:
        return sum(entry.lag or 0 for entry in self.partitions)

    @property
    def unread(self) -> int:
        return sum(entry.unread for entry in self.partitions)


async def lags(cluster: Cluster, group_ids: Sequence[str], topics: Iterable[str] = ()) -> list[GroupLag]:
    """Of each group, in their order. `topics` limits the view. Refused for a group that nobody knows."""
    only = set(topics)
    described, committed = await asyncio.gather(
        groups.describe_groups(cluster, group_ids), committed_offsets(cluster, group_ids)
    )
    wanted: dict[str, dict[TopicPartition, None]] = {}
    whole = await _partitions_of(
        cluster, {entry.topic for offsets in committed.values() for entry in offsets}
    )
    for group_id in group_ids:
        group = described[group_id]
        if isinstance(group, Refused) and (
            group.code != ErrorCode.GROUP_ID_NOT_FOUND or not committed[group_id]
        ):
            raise group
        owned = {} if isinstance(group, Refused) else group.owners
        known_of = {*committed[group_id], *owned}
        if not isinstance(group, Refused) and group.reads_whole_topics:
            known_of.update(*(whole.get(entry.topic, ()) for entry in committed[group_id]))
        all_of_it = sorted(known_of)
        wanted[group_id] = {entry: None for entry in all_of_it if not only or entry.topic in only}
    ends = await log_ends(cluster, {entry for entries in wanted.values() for entry in entries})
    found = []
    for group_id in group_ids:
        outcome = described[group_id]
        known = None if isinstance(outcome, Refused) else outcome
        owners = {} if known is None else known.owners
        found.append(
            GroupLag(
                group_id,
                known,
                [
                    PartitionLag(entry, committed[group_id].get(entry), ends.get(entry), owners.get(entry))
                    for entry in wanted[group_id]
                ],
            )
        )
    return found


async def _partitions_of(cluster: Cluster, topics: Iterable[str]) -> dict[str, list[TopicPartition]]:
    """Of the topics that are still there."""
    names = sorted(topics)
    if not names:
        return {}
    reply = await cluster.retried(lambda: cluster.metadata(names))
    return {
        topic.name: [TopicPartition(topic.name, entry.partition_index) for entry in topic.partitions]
        for topic in reply.topics
        if topic.name is not None and not topic.error_code
    }


async def log_ends(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnds]:
    """Of all partitions that have a leader. One that has none is a reason to look, not to fail."""
    wanted = sorted(partitions)
    if not wanted:
        return {}
    topics = sorted({partition.topic for partition in wanted})
    reply = await cluster.retried(lambda: cluster.metadata(topics))
    led = {
        TopicPartition(topic.name or "", entry.partition_index)
        for topic in reply.topics
        for entry in topic.partitions
        if not topic.error_code and entry.leader_id >= 0
    }
    there = [partition for partition in wanted if partition in led]
    latest = dict.fromkeys(there, LATEST)
    # In this order an end is never below the high watermark. A stable offset that is below one that was told
    # before is held by a transaction; asked first it would be below whenever a record comes between.
    first = await list_offsets(cluster, dict.fromkeys(there, EARLIEST))
    high = await list_offsets(cluster, latest)
    stable = await list_offsets(cluster, latest, read_committed=True)
    end = await list_offsets(cluster, latest, log_end=True)
    return {
        partition: LogEnds(
            first[partition].offset,
            min(stable[partition].offset, high[partition].offset),
            high[partition].offset,
            end[partition].offset,
        )
        for partition in there
    }
