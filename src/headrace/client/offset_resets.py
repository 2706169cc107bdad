"""Moving the committed offsets of a group: first a plan, from any of several targets, then the commit."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, TextIO

from headrace.client import groups
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.group_offsets import commit_offsets, committed_offsets
from headrace.client.offsets import ends_of, list_offsets, partitions_of
from headrace.core.ids import TopicPartition

_MAY_BE_RESET: Final = (groups.EMPTY, groups.DEAD)


class TargetKind(Enum):
    OFFSET = "offset"
    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    SHIFT = "shift"
    TIME = "time"
    GIVEN = "given"


class Target(NamedTuple):
    """`number` is an offset, how far to shift, or a time in milliseconds."""

    kind: TargetKind
    number: int = 0
    given: Mapping[TopicPartition, int] = {}


class PlannedReset(NamedTuple):
    partition: TopicPartition
    before: int | None
    after: int
    first: int
    end: int
    asked: int
    """What the target says. Where the log does not reach there, `after` is its nearest end."""

    @property
    def clipped(self) -> bool:
        return self.asked != self.after

    @property
    def lag(self) -> int:
        return self.end - self.after


async def chosen_partitions(
    cluster: Cluster, group_id: str, topics: Iterable[tuple[str, Sequence[int]]], target: Target
) -> list[TopicPartition]:
    """Those that are named; otherwise those of the file; otherwise all that the group has committed."""
    named: dict[TopicPartition, None] = {}
    for topic, indexes in topics:
        known = await partitions_of(cluster, topic)
        missing = [index for index in indexes if TopicPartition(topic, index) not in known]
        if missing:
            raise ClientFailure(
                f"topic {topic} has no partition {missing[0]}", f"it has {len(known)}, from 0 on"
            )
        named.update(dict.fromkeys(TopicPartition(topic, index) for index in indexes) if indexes else {})
        named.update({} if indexes else dict.fromkeys(known))
    if target.kind is TargetKind.GIVEN:
        return [partition for partition in target.given if not named or partition in named]
    if named:
        return list(named)
    committed = (await committed_offsets(cluster, [group_id]))[group_id]
    if not committed:
        raise ClientFailure(
            f"group {group_id} has committed nothing, so there is nothing to move",
            "name topics with --topic to give it offsets there; `headrace group list` shows all groups",
        )
    return sorted(committed)


async def plan_reset(
    cluster: Cluster, group_id: str, partitions: Sequence[TopicPartition], target: Target
) -> list[PlannedReset]:
    """What would be committed. Never outside of the log: there a consumer would fall back to its own rule."""
    before = (await committed_offsets(cluster, [group_id], partitions))[group_id]
    ends = await ends_of(cluster, partitions)
    current = {partition: entry.offset for partition, entry in before.items()}
    wanted = await _wanted(cluster, partitions, target, ends, current)
    return [
        PlannedReset(
            partition,
            current.get(partition),
            min(max(wanted[partition], ends[partition][0]), ends[partition][1]),
            *ends[partition],
            wanted[partition],
        )
        for partition in sorted(partitions)
    ]


async def _wanted(
    cluster: Cluster,
    partitions: Sequence[TopicPartition],
    target: Target,
    ends: Mapping[TopicPartition, tuple[int, int]],
    current: Mapping[TopicPartition, int],
) -> Mapping[TopicPartition, int]:
    if target.kind is TargetKind.OFFSET:
        return dict.fromkeys(partitions, target.number)
    if target.kind is TargetKind.EARLIEST:
        return {partition: ends[partition][0] for partition in partitions}
    if target.kind is TargetKind.LATEST:
        return {partition: ends[partition][1] for partition in partitions}
    if target.kind is TargetKind.CURRENT:
        return {partition: current.get(partition, ends[partition][1]) for partition in partitions}
    if target.kind is TargetKind.SHIFT:
        missing = [partition for partition in partitions if partition not in current]
        if missing:
            raise ClientFailure(
                f"the group has committed nothing in {missing[0]}, so there is nothing to shift",
                "limit --shift-by with --topic NAME:PARTITIONS, or use --to-offset there",
            )
        return {partition: current[partition] + target.number for partition in partitions}
    if target.kind is TargetKind.TIME:
        found = await list_offsets(cluster, dict.fromkeys(partitions, target.number))
        # No record is so young: the next one will be.
        return {p: place.offset if place.offset >= 0 else ends[p][1] for p, place in found.items()}
    return {partition: target.given[partition] for partition in partitions}


async def check_inactive(cluster: Cluster, group_id: str) -> bool:
    """Raises while the group has members. Returns whether the group exists."""
    group = await groups.describe_or_absent(cluster, group_id)
    if group is None:
        return False
    if group.state not in _MAY_BE_RESET or group.members:
        clients = sorted({f"{member.client_id} on {member.host}" for member in group.members})
        shown = ", ".join(clients[:3]) + (f" and {len(clients) - 3} more" if len(clients) > 3 else "")
        raise ClientFailure(
            f"group {group_id} is {group.state} with {len(group.members)} members ({shown}): they would go on"
            " where they are and commit over what is set now",
            "stop them, wait until `headrace group describe` says Empty, then reset; killed ones are members"
            " until their session times out",
        )
    return True


async def carry_out(cluster: Cluster, group_id: str, plan: Sequence[PlannedReset]) -> None:
    await commit_offsets(cluster, group_id, {entry.partition: entry.after for entry in plan})


# --- files ------------------------------------------------------------------------------------------------


def write_plan(file: TextIO, plans: Mapping[str, Sequence[PlannedReset]]) -> None:
    """As Kafka's tool exports it: topic,partition,offset; with several groups, the group before."""
    writer = csv.writer(file, lineterminator="\n")
    for group_id, plan in plans.items():
        for entry in plan:
            row = (*entry.partition, entry.after)
            writer.writerow((group_id, *row) if len(plans) > 1 else row)


def read_plan(file: Iterable[str], group_id: str) -> dict[TopicPartition, int]:
    """Offsets for the group: rows of other groups, where rows name groups, are passed over."""
    found: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(file), 1):
        if not row:
            continue
        cells = [cell.strip() for cell in row]
        if len(cells) == 4:
            if cells[0] != group_id:
                continue
            cells = cells[1:]
        if len(cells) != 3 or not cells[0] or not cells[1].isdecimal() or not cells[2].isdecimal():
            raise ClientFailure(
                f"line {number} of the file is not topic,partition,offset: {','.join(row)}",
                "`headrace group reset GROUP --to-current --to-file FILE` writes one to begin with",
            )
        found[TopicPartition(cells[0], int(cells[1]))] = int(cells[2])
    if not found:
        raise ClientFailure(f"the file has no offsets for group {group_id}")
    return found
