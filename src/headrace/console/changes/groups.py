"""Where a group goes on: the plan and the commit of `headrace group reset`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Final

from headrace.client import offset_resets
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.offset_resets import PlannedReset, Target, TargetKind
from headrace.client.shell_words import command, word
from headrace.client.start import parse_time_ms
from headrace.console.changes.planned import Planned, Shift, Subject, Tell
from headrace.core.ids import TopicPartition
from headrace.security.acl import ResourceType

TO: Final = "to"
VALUE: Final = "value"
TOPIC: Final = "topic"
OFFSETS: Final = "offsets"
"""What a plan has found, so that a yes means these offsets and no later ones."""
TARGETS: Final = {
    "earliest": "the first record that is there",
    "latest": "the end: only what comes from now on",
    "time": "the first record of a time",
    "shift": "so many records on, or back with a minus",
    "offset": "an offset",
}
_OPTIONS: Final = {
    TargetKind.EARLIEST: "--to-earliest",
    TargetKind.LATEST: "--to-latest",
    TargetKind.TIME: "--to-datetime {}",
    TargetKind.SHIFT: "--shift-by {}",
    TargetKind.OFFSET: "--to-offset {}",
}
_MOST_DIGITS: Final = 18


async def plan_reset(cluster: Cluster, name: str, fields: Mapping[str, str]) -> Planned:
    """With `offsets`: those. Else by `to` and `value`, in `topic` or wherever the group has committed."""
    target = _given(fields[OFFSETS]) if OFFSETS in fields else _target(fields)
    topic = fields.get(TOPIC, "").strip()
    exists = await offset_resets.check_inactive(cluster, name)
    chosen: list[tuple[str, list[int]]] = [(topic, [])] if topic and OFFSETS not in fields else []
    partitions = await offset_resets.chosen_partitions(cluster, name, chosen, target)
    found = await offset_resets.plan_reset(cluster, name, partitions, target)
    moved = [entry for entry in found if entry.before != entry.after]
    notes = [] if exists else [f"There is no group {name} yet: this makes it."]
    clipped = [entry for entry in found if entry.clipped]
    if clipped:
        notes.append(
            f"{clipped[0].partition}: {clipped[0].asked:,} is outside of the log, so {clipped[0].after:,} is"
            f" taken{f'; {len(clipped) - 1} more likewise' if len(clipped) > 1 else ''}."
        )
    kept = [(TO, fields.get(TO, "")), (VALUE, fields.get(VALUE, "")), (TOPIC, topic)]
    return Planned(
        Subject(ResourceType.GROUP, name),
        f"Reset group {name}",
        (),
        (_command(name, fields, topic),),
        partial(_carry_out, name, moved),
        shifts=tuple(map(Shift.of, moved)),
        notes=tuple(notes),
        fields=((OFFSETS, _written(moved)), *kept),
    )


async def _carry_out(name: str, moved: list[PlannedReset], cluster: Cluster, tell: Tell) -> None:
    tell(f"1 of 1: commit offsets of {name}")
    await offset_resets.carry_out(cluster, name, moved)


def _target(fields: Mapping[str, str]) -> Target:
    kinds = {name: TargetKind(name) for name in TARGETS}
    kind = kinds.get(fields.get(TO, ""))
    if kind is None:
        raise ClientFailure("it is not said where to", f"choose one of {', '.join(TARGETS)}")
    text = fields.get(VALUE, "").strip()
    if kind is TargetKind.TIME:
        return Target(kind, parse_time_ms(text))
    if kind in (TargetKind.SHIFT, TargetKind.OFFSET):
        return Target(kind, _number(text, is_signed=kind is TargetKind.SHIFT))
    return Target(kind)


def _number(text: str, *, is_signed: bool) -> int:
    digits = text.removeprefix("-") if is_signed else text
    if not digits.isascii() or not digits.isdecimal() or len(digits) > _MOST_DIGITS:
        raise ClientFailure(f"{text!r} is no number", "write it in digits, for instance 1200")
    return int(text)


def _written(moved: list[PlannedReset]) -> str:
    return json.dumps([[*entry.partition, entry.after] for entry in moved])


def _given(text: str) -> Target:
    """What a form of ours has sent back. It may have been somebody else's."""
    try:
        given = {
            TopicPartition(str(topic), int(partition)): int(offset)
            for topic, partition, offset in json.loads(text)
        }
    except (ValueError, TypeError, RecursionError):
        raise ClientFailure("the offsets of the plan cannot be read", "make the plan again") from None
    if not given or any(offset < 0 or each.partition < 0 for each, offset in given.items()):
        raise ClientFailure("the plan has no offsets", "make the plan again")
    return Target(TargetKind.GIVEN, given=given)


def _command(name: str, fields: Mapping[str, str], topic: str) -> str:
    option = _OPTIONS[_target(fields).kind].format(word(fields.get(VALUE, "").strip()))
    where = f" --topic {word(topic)}" if topic else ""
    return command("headrace group reset", name, options=f"{option}{where} --execute")
