"""Carrying out a plan of moves: some at a time, throttled if wanted, until the last replica is in sync.

What is done here is over when all brokers tell of it; reassignments.py has the single requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from headrace.client import health, log_dirs, reassignments, throttles
from headrace.client.agreement import until_all_agree
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.grouping import by_topic
from headrace.client.log_dirs import ReplicaFiles
from headrace.client.reassignments import Election, Reassignment
from headrace.client.throttles import Move
from headrace.core.ids import TopicPartition

AT_ONCE: Final = 50
"""Partitions that move together by default. More would copy faster and disturb more."""
POLL_SECONDS: Final = 0.5


class Progress(NamedTuple):
    done: int
    total: int
    moving: int
    copied_bytes: int
    """Of the replicas that are being added now."""
    whole_bytes: int

    def __str__(self) -> str:
        copied = ""
        if self.whole_bytes:
            share = min(self.copied_bytes / self.whole_bytes, 1.0)
            copied = f", {share:.0%} of {self.whole_bytes / 1e6:,.1f} MB copied"
        return f"{self.done} of {self.total} moved, {self.moving} under way{copied}"


async def carry_out(
    cluster: Cluster,
    moves: Mapping[TopicPartition, Move],
    *,
    bytes_per_second: int | None = None,
    at_once: int = AT_ONCE,
    tell: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Returns when everything is where it shall be and led by its first replica.

    Interrupted, what is under way goes on in the cluster, and its throttle stays.
    """
    if bytes_per_second is not None:
        await throttles.throttle(cluster, moves, bytes_per_second)
    rest = iter(moves.items())
    done = 0
    while chunk := dict(islice(rest, at_once)):
        await begin(cluster, {partition: move.after for partition, move in chunk.items()})
        await wait(cluster, list(chunk), done, len(moves), tell)
        done += len(chunk)
        # The first replica is the preferred leader; who is not yet in sync is asked again by the controller.
        await reassignments.elect_leaders(cluster, Election.PREFERRED, list(chunk))
    if bytes_per_second is not None:
        brokers = {b: None for move in moves.values() for b in (*move.before, *move.after)}
        await throttles.unthrottle(cluster, (partition.topic for partition in moves), brokers)
    await until_all_agree(cluster, list(by_topic(moves)))


async def begin(cluster: Cluster, targets: Mapping[TopicPartition, Sequence[int]]) -> None:
    refused = await reassignments.reassign(cluster, targets)
    if refused:
        some = "; ".join(str(reason) for reason in islice(refused.values(), 3))
        raise ClientFailure(
            f"{len(refused)} of {len(targets)} moves were refused: {some}",
            "the others go on; `headrace cluster status` shows them" if len(refused) < len(targets) else "",
        )


async def wait(
    cluster: Cluster,
    partitions: Sequence[TopicPartition],
    done_before: int = 0,
    total: int | None = None,
    tell: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Until none of these partitions moves any more."""
    total = len(partitions) if total is None else total
    while moving := await reassignments.list_reassignments(cluster, partitions):
        copied, whole = await _bytes(cluster, moving)
        done = done_before + len(partitions) - len(moving)
        tell(Progress(done, total, len(moving), copied, whole))
        await asyncio.sleep(POLL_SECONDS)
    tell(Progress(done_before + len(partitions), total, 0, 0, 0))


async def _bytes(cluster: Cluster, moving: Mapping[TopicPartition, Reassignment]) -> tuple[int, int]:
    """(copied, to copy) of the replicas that are added."""
    holders: dict[int, list[TopicPartition]] = {}
    for partition, state in moving.items():
        for broker_id in state.replicas:
            holders.setdefault(broker_id, []).append(partition)
    files = await log_dirs.replica_files(cluster, holders)
    copied = whole = 0
    for partition, state in moving.items():
        present = [_size(files, partition, b) for b in state.replicas if b not in state.adding]
        size = max(present, default=0)
        for broker_id in state.adding:
            copied += min(_size(files, partition, broker_id), size)
            whole += size
    return copied, whole


def _size(
    files: Mapping[tuple[TopicPartition, int], ReplicaFiles], partition: TopicPartition, broker: int
) -> int:
    found = files.get((partition, broker))
    return 0 if found is None else found.size


async def follow(
    cluster: Cluster, partitions: Sequence[TopicPartition], tell: Callable[[Progress], None] = lambda _: None
) -> list[TopicPartition]:
    """Wait for what somebody else began with these, then take the throttle away; the ones that moved."""
    moving = await reassignments.list_reassignments(cluster, partitions)
    await wait(cluster, list(moving), tell=tell)
    await _unthrottle(cluster, partitions)
    await until_all_agree(cluster, list(by_topic(moving)))
    return sorted(moving)


async def cancel(cluster: Cluster, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Call off what is in progress with these, and take the throttle away; the ones that moved."""
    moving = await reassignments.list_reassignments(cluster, partitions)
    if moving:
        refused = await reassignments.reassign(cluster, dict.fromkeys(moving))
        if refused:
            raise ClientFailure(next(iter(refused.values())))
    await _unthrottle(cluster, partitions)
    await until_all_agree(cluster, list(by_topic(moving)))
    return sorted(moving)


async def elect_leaders(
    cluster: Cluster, kind: Election, partitions: Sequence[TopicPartition] | None = None
) -> tuple[list[TopicPartition], dict[TopicPartition, str]]:
    """(those with a new leader, those that were refused and why), once all brokers name the new leaders."""
    elected, refused = await reassignments.elect_leaders(cluster, kind, partitions)
    await until_all_agree(cluster, list(by_topic(elected)))
    return elected, refused


async def _unthrottle(cluster: Cluster, partitions: Sequence[TopicPartition]) -> None:
    """The rates belong to all that moves: they stay while anything else does."""
    elsewhere = await reassignments.list_reassignments(cluster)
    brokers = [] if elsewhere else [b.broker_id for b in (await health.describe_cluster(cluster)).brokers]
    await throttles.unthrottle(cluster, (partition.topic for partition in partitions), brokers)
