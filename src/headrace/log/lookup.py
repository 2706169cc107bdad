"""Look-ups by time. The time index leads near the place; the headers of the batches lead to the batch.

Only then is one batch opened, to find the record. A batch whose inside cannot be read answers for itself
with its header: its first offset and its largest timestamp. So a bad inside never stops a look-up.

A look-up runs on the loop. A batch that is large or compressed is not opened there: the look-up stops with
`Unopened`, the question is answered elsewhere, and the look-up is made again with that answer. Headers may
claim more than their batches hold, and what they speak of may be deleted: how many batches are opened and
looked at for one answer has a limit, after which the headers are believed, or the largest time so far is the
answer.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.core.errors import ClientError
from headrace.log import scan
from headrace.log.scan import Readable
from headrace.log.segment import Segment
from headrace.log.segment_times import largest_timestamp, time_floor
from headrace.protocol.batch import HEADER_SIZE, BatchHeader, read_header
from headrace.protocol.record_spans import first_at_time, latest
from headrace.protocol.records import open_batch

if TYPE_CHECKING:
    from headrace.log.segment_chain import SegmentChain


MAX_OPENED: Final = 16
"""Batches, in one segment for the first record of a time, in all for the largest time."""
MAX_ASKED: Final = 64
"""Batches that one look-up has opened elsewhere."""
MAX_WALKED: Final = 10_000
"""Headers that are compared for the largest time: a few hundredths of a second."""


OPENED_AT_ONCE_BYTES: Final = 16 * 1024
"""A batch without compression up to this size is opened where it is found."""


class TimestampOffset(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


class BatchQuestion(NamedTuple):
    """Which record of one batch is meant. Can be answered in any thread: it knows the file."""

    file: Readable
    position: int
    header: BatchHeader
    log_start: int
    timestamp: int | None
    """The first record that is not older; None: the youngest."""

    @property
    def key(self) -> Hashable:
        """The same batch may be read through another descriptor the next time."""
        return self[1:]

    @property
    def is_cheap(self) -> bool:
        return not self.header.compression and self.header.size <= OPENED_AT_ONCE_BYTES

    @property
    def claimed(self) -> TimestampOffset:
        """What the header says, for a batch whose inside cannot be read."""
        return _as_claimed(self.header, self.log_start)

    def answer(self) -> TimestampOffset | None:
        """None if there is no such record. OSError if the file cannot be read."""
        header = self.header
        least = max(0, self.log_start - header.base_offset)
        try:
            _, body = open_batch(self.file.pread(header.size, self.position))
            if self.timestamp is None:
                found = latest(body, header.record_count, least)
            else:
                wanted = self.timestamp - header.base_timestamp
                found = first_at_time(body, header.record_count, wanted, least)
        except ClientError:
            return self.claimed
        if found is None:
            return None
        return TimestampOffset(
            header.base_offset + found[0], header.base_timestamp + found[1], header.leader_epoch
        )


Answers = dict[Hashable, TimestampOffset | None]
"""Of questions that were answered before, by their keys. Without any, every batch is opened on the spot."""


class Unopened(Exception):
    """The look-up needs the answer to this question first."""

    def __init__(self, question: BatchQuestion) -> None:
        super().__init__(f"batch at {question.position}")
        self.question = question


def _ask(question: BatchQuestion, answers: Answers | None) -> TimestampOffset | None:
    if answers is None or question.is_cheap:
        return question.answer()
    if question.key not in answers:
        if len(answers) >= MAX_ASKED:
            return question.claimed
        raise Unopened(question)
    return answers[question.key]


def offset_for_timestamp(
    log: SegmentChain, timestamp: int, limit: int, answers: Answers | None = None
) -> TimestampOffset | None:
    for segment in log.segments:
        if segment.base_offset >= limit:
            return None
        if segment.size and largest_timestamp(segment) >= timestamp:
            found = _first_at_or_after(log, segment, timestamp, limit, answers)
            if found is not None:
                return found
    return None


def _first_at_or_after(
    log: SegmentChain, segment: Segment, timestamp: int, limit: int, answers: Answers | None
) -> TimestampOffset | None:
    first = segment.locate(max(time_floor(segment, timestamp), log.log_start_offset))
    if first is None:
        return None
    file = segment.unverified()
    opened = 0
    for position, header in scan.headers(file, first.position, segment.size):
        if header.base_offset >= limit:
            return None
        if header.max_timestamp >= timestamp and header.last_offset >= log.log_start_offset:
            opened += 1
            found = _in_batch(log, file, position, header, timestamp, answers, may_open=opened <= MAX_OPENED)
            if found is not None and found.offset < limit:
                return found
    return None


def _in_batch(
    log: SegmentChain,
    file: Readable,
    position: int,
    header: BatchHeader,
    timestamp: int | None,
    answers: Answers | None,
    *,
    may_open: bool = True,
) -> TimestampOffset | None:
    if not may_open or header.is_log_append_time:
        return _as_claimed(header, log.log_start_offset)
    return _ask(BatchQuestion(file, position, header, log.log_start_offset, timestamp), answers)


def max_timestamp_offset(
    log: SegmentChain, limit: int, answers: Answers | None = None
) -> TimestampOffset | None:
    candidates = _visible(log, limit)
    best = max(candidates, key=largest_timestamp, default=None)
    if best is None or largest_timestamp(best) < 0:
        return None
    found = _largest_as_told(log, best, limit, answers)
    return _largest_visible(log, candidates, limit, answers) if found is None else found


def _visible(log: SegmentChain, limit: int) -> list[Segment]:
    """The segments that are not altogether below the log start or above the limit."""
    found = log.segments
    ends = [segment.base_offset for segment in found[1:]] + [log.end_offset]
    return [
        segment
        for segment, end in zip(found, ends, strict=True)
        if segment.size and segment.base_offset < limit and end > log.log_start_offset
    ]


def _largest_as_told(
    log: SegmentChain, segment: Segment, limit: int, answers: Answers | None
) -> TimestampOffset | None:
    """The record with the largest time of a segment, which knows its batch; None if it may not be seen."""
    largest = largest_timestamp(segment)
    at = segment.locate(segment.max_timestamp_offset)
    if at is None or at.last_offset < log.log_start_offset:
        return None
    file = segment.unverified()
    header = read_header(file.pread(HEADER_SIZE, at.position))
    if header.max_timestamp < largest:
        return None
    found = _in_batch(log, file, at.position, header, largest, answers)
    return found if found is not None and found.offset < limit else None


def _largest_visible(
    log: SegmentChain, candidates: list[Segment], limit: int, answers: Answers | None
) -> TimestampOffset | None:
    """The slow way, for when the largest timestamp of all lies below the log start or above the limit, or is
    only claimed. Segments and batches come with what they claim, the largest first, until no claim is left
    that is larger than what was found."""
    best: TimestampOffset | None = None
    walked = opened = 0
    for segment in sorted(candidates, key=largest_timestamp, reverse=True):
        if walked >= MAX_WALKED or (best is not None and best.timestamp > largest_timestamp(segment)):
            break
        claims = _claims(log, segment, limit, MAX_WALKED - walked)
        walked += len(claims)
        for position, header in sorted(claims, key=lambda claim: -claim[1].max_timestamp):
            if best is not None and best.timestamp > header.max_timestamp:
                break
            if (
                best is not None
                and best.timestamp == header.max_timestamp
                and best.offset < header.base_offset
            ):
                continue
            opened += 1
            found = _in_batch(
                log, segment.unverified(), position, header, None, answers, may_open=opened <= MAX_OPENED
            )
            if found is not None and (best is None or _is_better(found, best)):
                best = found
    return best if best is not None and best.timestamp >= 0 else None


def _is_better(found: TimestampOffset, best: TimestampOffset) -> bool:
    return (found.timestamp, -found.offset) > (best.timestamp, -best.offset)


def _claims(log: SegmentChain, segment: Segment, limit: int, most: int) -> list[tuple[int, BatchHeader]]:
    """Where the batches are that may be seen, and their headers."""
    first = segment.locate(log.log_start_offset)
    if first is None:
        return []
    found = scan.headers(segment.unverified(), first.position, segment.size)
    return [claim for claim in islice(found, most) if claim[1].next_offset <= limit]


def _as_claimed(header: BatchHeader, log_start: int) -> TimestampOffset:
    return TimestampOffset(max(header.base_offset, log_start), header.max_timestamp, header.leader_epoch)
