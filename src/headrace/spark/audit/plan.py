"""The rules of an audit, without Spark: what can be said of a window, given a picture of the tiers.

Three questions, each with its own proof.

*Was something lost?* The log is read after the events were, so what a producer told of then was in the log,
if that was read to its end. Fewer records than told is a loss, at once, whoever else may be silent.

*Is there too much, or something else?* A record may be in the log before its producer has told of it. So this
can be said only when every producer has told of all that it was given before the log was asked, and when one
of which nobody has heard yet has had the time to tell; a producer that cannot tell any more leaves the window
incomplete.

*Is the window over?* When its end and the time for late records have passed, and every producer says that it
has told of all until then. A record that comes even later moves all tiers alike, and leads to a new
certificate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from headrace.audit.tally import NOTHING, Cell, Tally, total
from headrace.audit.verdict import LOG, PRODUCERS, Difference, Kind, State, Verdict, window_text
from headrace.spark.audit.picture import LakeTier, Picture, ProducerState, Read, Since, patience_ms

#: Of a topic in which nothing happens, only so many windows are certified at a time.
EMPTY_AT_MOST: Final = 1_440


class _Case:
    """One window of one topic, while it is judged."""

    def __init__(self, picture: Picture, topic: str, window_ms: int) -> None:
        self.picture = picture
        self.topic = topic
        self.window_ms = window_ms
        self.end_ms = window_ms + picture.window_length_ms
        self.due_ms = self.end_ms + picture.lateness_ms
        self.differences: list[Difference] = []
        self.incomplete: list[str] = []
        self.open: list[str] = []

    def cell(self, partition: int) -> Cell:
        return Cell(self.topic, partition, self.window_ms)


def judge(picture: Picture, topic: str, window_ms: int, partitions: Iterable[int]) -> Verdict:
    """`partitions` are all that any tier has something of, in this window."""
    wanted = sorted(partitions)
    case = _Case(picture, topic, window_ms)
    if case.due_ms > picture.now_ms:
        case.open.append(f"records are awaited until {window_text(case.due_ms)}")
    if not picture.with_producers:
        _await_end(case)
    blocked = _blocked(case) if picture.with_producers else False
    for partition in wanted:
        if picture.with_producers:
            _compare_log(case, partition, blocked)
        for name, lake in picture.lakes.items():
            _compare_lake(case, partition, name, lake)
    tiers = _tiers(case, wanted)
    order = {name: at for at, name in enumerate(tiers)}
    case.differences.sort(key=lambda found: (order[found.tier], found.partition))
    return Verdict(
        topic,
        window_ms,
        picture.window_length_ms,
        _state(case),
        tiers,
        tuple(case.differences),
        tuple(case.incomplete + case.open),
        picture.now_ms,
    )


def _state(case: _Case) -> State:
    if case.differences:
        return State.DIFFERENT
    if case.incomplete:
        return State.INCOMPLETE
    return State.OPEN if case.open else State.CERTIFIED


def _tiers(case: _Case, partitions: list[int]) -> dict[str, Tally]:
    picture = case.picture
    cells = [case.cell(partition) for partition in partitions]
    tiers = {}
    if picture.with_producers:
        tiers[PRODUCERS] = total(picture.reported.get(cell, NOTHING) for cell in cells)
    tiers[LOG] = total(picture.log.get(cell, Read()).tally for cell in cells)
    for name, lake in picture.lakes.items():
        tiers[name] = total(lake.cells.get(cell, NOTHING) for cell in cells)
    return tiers


# --- producers ----------------------------------------------------------------------------------------------


def _blocked(case: _Case) -> bool:
    """Whether some producer has not told of all of this window. Says which, and whether it still may."""
    picture = case.picture
    if case.topic not in picture.told_topics:
        case.incomplete.append(f"no producer has told of {case.topic}")
        return True
    blocked = False
    for producer in picture.producers:
        if not producer.writes_to(case.topic) or producer.complete_until_ms >= case.due_ms:
            continue
        # What a dead one was given, it was given before its end: windows after that are none of its business.
        if producer.ended_ms is not None and case.window_ms >= producer.ended_ms:
            continue
        blocked = True
        reason = _trouble(picture, producer)
        if reason is None:
            case.open.append(f"producer {producer.name} has not told of all of it yet")
        else:
            case.incomplete.append(f"producer {producer.name} {reason}")
    return blocked


def _trouble(picture: Picture, producer: ProducerState) -> str | None:
    if producer.fault is not None:
        return producer.fault
    since = window_text(producer.complete_until_ms)
    if producer.ended_ms is not None:
        return f"ended without a last word; what it was given since {since} is not known"
    if picture.now_ms - producer.heard_ms > patience_ms(producer.interval_ms, picture.silent_after_ms):
        return f"is silent; it has told of all until {since}"
    return None


def _compare_log(case: _Case, partition: int, blocked: bool) -> None:
    picture, cell = case.picture, case.cell(partition)
    told, read = picture.reported.get(cell, NOTHING), picture.log.get(cell, Read())
    found = read.tally
    if found == told:
        return
    if found.count < told.count:
        if not _await_log(case, partition):
            case.differences.append(_difference(LOG, PRODUCERS, partition, found, told))
        return
    if blocked:
        return
    more = f"{found.count - told.count} more" if found.count > told.count else "other records"
    excess = f"the log of partition {partition} has {more} than told"
    teller = _may_still_tell(case, read)
    if teller is not None:
        case.open.append(f"{excess}; {teller} may still tell")
        return
    for producer in _untold(case, read):
        case.incomplete.append(f"{excess}; {producer.name} {producer.fault or 'ended without a last word'}")
        return
    unsure = picture.uncertain.get(cell, 0) + picture.uncertain.get(case.cell(-1), 0)
    if unsure and found.count - told.count <= unsure:
        case.incomplete.append(
            f"producers do not know whether {unsure} records of partition {partition} were stored"
        )
        return
    case.differences.append(_difference(LOG, PRODUCERS, partition, found, told))


def _await_log(case: _Case, partition: int) -> bool:
    """Whether something was in the log that could not be read: it may be what is missing."""
    unread = case.picture.unread.get((case.topic, partition), 0)
    if unread:
        case.open.append(f"the log of partition {partition} has {unread} more that cannot be read yet")
    return unread > 0


def _await_end(case: _Case) -> None:
    """Where nobody tells what belongs to a window, it is all that was in the log when it was over."""
    for topic, partition in sorted(case.picture.unread):
        heard_ms = case.picture.heard.get((topic, partition), -math.inf)
        if topic == case.topic and heard_ms < case.due_ms:
            _await_log(case, partition)


def _may_still_tell(case: _Case, read: Read) -> str | None:
    """Who may have written what is read of a cell and not told of, and will tell."""
    picture = case.picture
    # Nobody is blocked, so whoever lives has told of the window; a late record may still be untold.
    for producer in _untold(case, read, living=True):
        return producer.name
    # A producer that has just started is in the log before its first event is here, and one that writes to
    # this topic for the first time is not known to: each is given as long as one that is silent.
    intervals = [producer.interval_ms for producer in picture.producers if producer.ended_ms is None]
    patience = max(
        (patience_ms(interval, picture.silent_after_ms) for interval in intervals),
        default=picture.silent_after_ms,
    )
    if case.due_ms > picture.now_ms or picture.events_ms - read.asked_ms <= patience:
        return "somebody who is not known yet"
    return None


def _untold(case: _Case, read: Read, *, living: bool = False) -> Iterator[ProducerState]:
    """Writers to the topic that have not told of all until the log was asked: the living, or the dead, as far
    as the window is their business."""
    for producer in case.picture.producers:
        told = producer.complete_until_ms >= read.asked_ms + case.picture.clock_skew_ms
        if told or not producer.writes_to(case.topic):
            continue
        ended_ms = producer.ended_ms
        if (ended_ms is None) if living else (ended_ms is not None and case.window_ms < ended_ms):
            yield producer


# --- lakes --------------------------------------------------------------------------------------------------


def _compare_lake(case: _Case, partition: int, name: str, lake: LakeTier) -> None:
    cell = case.cell(partition)
    read, found = case.picture.log.get(cell, Read()), lake.cells.get(cell, NOTHING)
    if found == read.tally:
        return
    loaded = lake.positions.get((case.topic, partition), 0)
    # Too many is too many, however far it is. Anything else may be what is still on its way.
    if loaded <= read.last_offset and found.count <= read.tally.count:
        case.incomplete.append(
            f"{name} has partition {partition} up to offset {loaded}, and needs {read.last_offset + 1}"
        )
        return
    case.differences.append(_difference(name, LOG, partition, found, read.tally))


def _difference(tier: str, reference: str, partition: int, found: Tally, expected: Tally) -> Difference:
    if found.count < expected.count:
        kind = Kind.LOST
    elif found.count > expected.count:
        kind = Kind.DOUBLED
    else:
        kind = Kind.ALTERED
    return Difference(tier, reference, partition, kind, found.count, expected.count)


# --- which windows ------------------------------------------------------------------------------------------


def windows_to_judge(
    picture: Picture, since: Since, judged: Mapping[tuple[str, int], Verdict]
) -> dict[tuple[str, int], set[int]]:
    """(topic, window) with the partitions of each: all that some tier has, and empty ones beside them.

    A scheduler waits for the certificate of an empty window as for any other.
    """
    found: dict[tuple[str, int], set[int]] = {}
    tiers = (
        picture.reported,
        picture.uncertain,
        picture.log,
        *(lake.cells for lake in picture.lakes.values()),
    )
    begin = {topic: -math.inf if first is None else first for topic, first in since.items()}
    for tier in tiers:
        for topic, partition, window in tier:
            if window >= begin.get(topic, math.inf):
                partitions = found.setdefault((topic, window), set())
                if partition >= 0:
                    partitions.add(partition)
    for topic in since:
        for window in _empty(picture, topic, found, judged):
            found.setdefault((topic, window), set())
    return dict(sorted(found.items(), key=lambda entry: (entry[0][1], entry[0][0])))


def _empty(
    picture: Picture,
    topic: str,
    found: Mapping[tuple[str, int], set[int]],
    judged: Mapping[tuple[str, int], Verdict],
) -> Iterator[int]:
    length = picture.window_length_ms
    known = [window for name, window in (*found, *judged) if name == topic]
    if not known:
        return
    # Between known ones, and after them as long as somebody lives who says that there was nothing.
    heard = [producer.complete_until_ms for producer in picture.producers if producer.writes_to(topic)]
    over = min(picture.now_ms, max(heard, default=0)) - picture.lateness_ms
    # One record with a time years ahead must not draw the quiet windows of now out of sight.
    begun = [window for window in known if window <= picture.now_ms]
    newest = max([*begun, over // length * length - length])
    oldest = max(min(known), newest - (EMPTY_AT_MOST - 1) * length)
    for window in range(oldest, newest + length, length):
        before = judged.get((topic, window))
        if before is None or before.state is not State.CERTIFIED:
            yield window


def settle(verdicts: Iterable[Verdict], judged: Mapping[tuple[str, int], Verdict]) -> list[Verdict]:
    """Those that say something new. A certificate stands until another one, or a difference, replaces it."""
    news = []
    for verdict in verdicts:
        before = judged.get((verdict.topic, verdict.window_ms))
        if verdict.says_the_same_as(before):
            continue
        certified = before is not None and before.revision > 0
        if certified and verdict.state in (State.OPEN, State.INCOMPLETE):
            continue
        revision = before.revision if before is not None else 0
        if verdict.state is State.CERTIFIED:
            revision += 1
        news.append(_with_revision(verdict, revision))
    return news


def _with_revision(verdict: Verdict, revision: int) -> Verdict:
    return Verdict(
        verdict.topic,
        verdict.window_ms,
        verdict.length_ms,
        verdict.state,
        verdict.tiers,
        verdict.differences,
        verdict.reasons,
        verdict.decided_ms,
        revision,
    )


def first_difference(verdicts: Iterable[Verdict]) -> tuple[Verdict, Difference] | None:
    """By window, then by tier along a record's way, then by partition."""
    for verdict in sorted(verdicts, key=lambda each: (each.window_ms, each.topic)):
        if verdict.differences:
            return verdict, verdict.differences[0]
    return None
