"""Where to begin and to end, as Spark's connector takes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from headrace.spark.lake.checkpoint import Offsets, offsets_json
from headrace.spark.source.brokers import Brokers
from headrace.spark.source.options import End, OnLoss, SourceRefused, Start, Wish

_EARLIEST: Final = -2


def milliseconds(when: datetime) -> int:
    if when.tzinfo is None:
        raise SourceRefused(f"{when} has no time zone: give it one, such as tzinfo=timezone.utc")
    return round(when.timestamp() * 1000)


def named(given: Mapping[str, Mapping[int, int]], partitions: Iterable[tuple[str, int]]) -> Offsets:
    there = set(partitions)
    found = {(topic, int(each)): at for topic, offsets in given.items() for each, at in offsets.items()}
    for (topic, partition), offset in found.items():
        if (topic, partition) not in there:
            raise SourceRefused(f"there is no partition {partition} of {topic} to begin or to end in")
        if offset < 0:
            raise SourceRefused(f"an offset of {topic}, partition {partition} is {offset}: at least 0")
    return found


def first_start(brokers: Brokers, wish: Wish, start: Start) -> dict[str, str]:
    """For a stream. The connector resolves words and times itself when the query first starts."""
    if isinstance(start, datetime):
        return {
            "startingTimestamp": str(milliseconds(start)),
            "startingOffsetsByTimestampStrategy": "latest",
        }
    if start in ("earliest", "latest"):
        return {"startingOffsets": str(start)}
    partitions = brokers.partitions()
    offsets = _given(brokers, wish, start, partitions)
    return {
        "startingOffsets": offsets_json({each: offsets.get(each, _EARLIEST) for each in sorted(partitions)})
    }


def _given(brokers: Brokers, wish: Wish, start: Start, partitions: list[tuple[str, int]]) -> Offsets:
    if isinstance(start, Mapping):
        return named(start, partitions)
    if start != "group":
        raise SourceRefused(f"start is earliest, latest, group, a time or offsets, not {start!r}")
    if wish.group is None:
        raise SourceRefused('start="group" needs to know which: say group=...')
    return brokers.committed(wish.group)


def whole(brokers: Brokers, wish: Wish, start: Start, end: End) -> dict[str, str]:
    """For a batch: both ends as offsets, so that the frame always has the same records.

    Topics grow and are cut meanwhile. So the end is asked for behind all that has to lie before it.
    """
    partitions = brokers.partitions()
    by_word = isinstance(start, datetime) or start in ("earliest", "latest")
    given = {} if by_word else _given(brokers, wish, start, partitions)
    earliest = brokers.offsets(partitions, "earliest")
    latest = brokers.offsets(partitions, "latest")
    if isinstance(start, datetime):
        begins = _at_time(brokers, start, latest)
    elif start in ("earliest", "latest"):
        begins = earliest if start == "earliest" else latest
    else:
        begins = {**earliest, **given}
    if isinstance(end, datetime):
        ends = _at_time(brokers, end, latest)
    elif isinstance(end, Mapping):
        ends = {**latest, **named(end, partitions)}
    elif end == "latest":
        ends = latest
    else:
        raise SourceRefused(f"end is latest, a time or offsets, not {end!r}")
    found = fitting(begins, ends, earliest, latest, wish.on_loss)
    return {
        "startingOffsets": offsets_json({each: found[each][0] for each in sorted(partitions)}),
        "endingOffsets": offsets_json({each: found[each][1] for each in sorted(partitions)}),
    }


def _at_time(brokers: Brokers, when: datetime, latest: Offsets) -> Offsets:
    """A time that no record has reached means the end, and that may be further on by now."""
    found = brokers.offsets(list(latest), milliseconds(when))
    return {each: min(found[each], at) for each, at in latest.items()}


def fitting(
    begins: Offsets, ends: Offsets, earliest: Offsets, latest: Offsets, on_loss: OnLoss
) -> dict[tuple[str, int], tuple[int, int]]:
    """What there is of each range. Pure."""
    found = {}
    for partition in latest:
        topic, number = partition
        begin, end = begins[partition], ends[partition]
        first, last = earliest[partition], latest[partition]
        if end > last:
            raise SourceRefused(f"{topic}, partition {number} ends at {last}, before the given end {end}")
        if begin < first and begin < end:
            if on_loss == "fail":
                raise SourceRefused(
                    f"{topic}, partition {number} begins at {first}: {first - begin} offsets from {begin} "
                    'on are gone. To read what there is, say on_loss="earliest"'
                )
            begin = first if on_loss == "earliest" else last
        if begin > last:
            raise SourceRefused(
                f"{topic}, partition {number} ends at {last}, before the given start {begin}: was the topic "
                'deleted and made anew? Then say start="earliest"'
            )
        found[partition] = (begin, max(begin, end))
    return found
