"""Two streams of batches of one partition, compared: byte by byte but for the leader epoch.

A link copies batches as they are, so any other difference is one, with one exception: compaction takes
records out of batches, on either side by its own schedule. In a compacted topic the records that both have
are compared instead, and those that only one has are counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

from headrace.core.errors import HeadraceError
from headrace.protocol.batch import BatchHeader, check
from headrace.protocol.records import Record, decode_records

_EPOCH_FROM: Final = 12
_EPOCH_TO: Final = 16

Batches = AsyncIterator[memoryview]
"""Whole batches, one at a time, in order."""


@dataclass(slots=True)
class Tally:
    batches: int = 0
    records: int = 0
    bytes: int = 0
    only_at_source: int = 0
    """Records that compaction took here, or not yet over there."""
    only_here: int = 0
    reached: int = 0
    """Behind the last batch that was compared whole."""
    difference: str | None = None
    """The first one. Nothing is compared behind it."""
    _digest: hashlib._Hash = field(default_factory=hashlib.sha256, repr=False)

    @property
    def digest(self) -> str:
        """SHA-256 of what was the same, leader epochs left out."""
        return self._digest.hexdigest()

    def count(self, batch: memoryview, header: BatchHeader) -> None:
        self.batches += 1
        self.records += header.record_count
        self.reached = header.next_offset
        self.bytes += len(batch)
        self._digest.update(batch[:_EPOCH_FROM])
        self._digest.update(batch[_EPOCH_TO:])


class _Side:
    """One stream: the batch that is next, and its header, checked."""

    def __init__(self, name: str, batches: Batches) -> None:
        self.name = name
        self.batch = memoryview(b"")
        self.header: BatchHeader | None = None
        self._batches = batches

    async def advance(self) -> bool:
        self.header = None
        try:
            async for batch in self._batches:
                self.batch, self.header = batch, check(batch)
                return True
        except HeadraceError as error:
            raise Damaged(f"{self.name}: {error}") from error
        return False

    def records(self) -> dict[int, Record]:
        try:
            return {record.offset: record for record in decode_records(self.batch)}
        except HeadraceError as error:
            raise Damaged(f"{self.name}: {error}") from error


class Damaged(HeadraceError):
    """A batch does not have the checksum that it says."""


async def compare(
    source: Batches, here: Batches, *, is_compacted: bool = False, at_most: int | None = None
) -> Tally:
    """Until one ends, differs, or `at_most` bytes were the same. Both streams end at the same offset, so that
    a stream that ends early is a difference: the caller sees to that."""
    tally, left, right = Tally(), _Side("the source", source), _Side("here", here)
    try:
        more = [await left.advance(), await right.advance()]
        while all(more) and tally.difference is None and (at_most is None or tally.bytes < at_most):
            assert left.header is not None
            assert right.header is not None
            if _same(left.batch, right.batch):
                tally.count(left.batch, left.header)
                more = [await left.advance(), await right.advance()]
            elif is_compacted:
                more = await _compare_records(tally, left, right)
            else:
                tally.difference = _words(left.header, right.header)
        if tally.difference is None and any(more) and not all(more) and not is_compacted:
            tally.difference = _early_end(left if more[0] else right)
    except Damaged as error:
        tally.difference = str(error)
    return tally


def _same(one: memoryview, other: memoryview) -> bool:
    return one[:_EPOCH_FROM] == other[:_EPOCH_FROM] and one[_EPOCH_TO:] == other[_EPOCH_TO:]


def _words(there: BatchHeader, here: BatchHeader) -> str:
    if there.base_offset != here.base_offset:
        return f"the source goes on at offset {there.base_offset}, here it is {here.base_offset}"
    if there.next_offset != here.next_offset:
        return (
            f"offset {there.base_offset}: the batch ends at {there.last_offset} at the source, at"
            f" {here.last_offset} here"
        )
    return (
        f"offset {there.base_offset}: not the same bytes (checksum {there.crc:#010x} at the source,"
        f" {here.crc:#010x} here)"
    )


def _early_end(side: _Side) -> str:
    assert side.header is not None
    return f"only {side.name} has a batch at offset {side.header.base_offset}"


async def _compare_records(tally: Tally, left: _Side, right: _Side) -> list[bool]:
    """Up to the next offset at which a batch ends on both sides."""
    there, own = left.records(), right.records()
    more = [True, True]
    while (
        all(more)
        and left.header is not None
        and right.header is not None
        and left.header.next_offset != right.header.next_offset
    ):
        if left.header.next_offset < right.header.next_offset:
            more[0] = await left.advance()
            there.update(left.records() if more[0] else {})
        else:
            more[1] = await right.advance()
            own.update(right.records() if more[1] else {})
    for offset in sorted(there.keys() & own.keys()):
        if there[offset] != own[offset]:
            tally.difference = f"offset {offset}: not the same record"
            return more
        tally.records += 1
    tally.batches += 1
    tally.bytes += len(left.batch)
    tally.only_at_source += len(there.keys() - own.keys())
    tally.only_here += len(own.keys() - there.keys())
    if all(more):
        more = [await left.advance(), await right.advance()]
    return more
