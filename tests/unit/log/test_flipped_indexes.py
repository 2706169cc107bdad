"""A wrong index costs time, never a wrong answer (invariant 11): every bit of every index is flipped, and
everything is asked for, in both ways. On a real disk: a position outside of a file is an error there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from headrace.core.ports import FileRange
from headrace.log import files
from headrace.log.index_repair import IndexRepair
from headrace.log.os_disk import OsDisk, OsFile
from headrace.log.partition_log import PartitionLog
from headrace.log.read_ahead import ReadAhead
from headrace.log.read_state import ColdRead
from headrace.log.segment_times import largest_timestamp
from headrace.log.transaction_index import AbortedTransaction
from tests.unit.log.material import NOW, append, open_at, topic_config, whole_batches
from tests.unit.log.transactional_writes import end, write

SMALL = topic_config(segment_bytes=900, index_interval_bytes=250)
MAX_BYTES = 400
T = TypeVar("T")
TIMES = [NOW + each for each in (0, 1, 1, 5, 5, 4, 7)]


class FastFile(OsFile):
    __slots__ = ()

    def sync(self) -> None:
        """It is a matter of reading here."""


class FastDisk(OsDisk):
    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> OsFile:
        file = super().open(path, create=create)
        fast = FastFile(file.fileno())
        file._descriptor = -1
        return fast

    def sync_dir(self, path: str) -> None:
        """Nor here."""


ABORTED: list[AbortedTransaction] = []


def written(root: Path) -> PartitionLog:
    log = open_at(FastDisk(), str(root), config=SMALL)
    for number, when in enumerate(TIMES):
        append(log, b"%d" % number * 10, b"x" * 20, timestamp=when)
        if number % 3 == 0:
            write(log, 7 + number, 0)
            end(log, 7 + number, commit=number % 2 == 0)
    ABORTED[:] = [each for segment in log.segments for each in segment.transactions.entries()]
    assert ABORTED
    log.close()
    return log


def reopened(root: Path, end_offset: int) -> PartitionLog:
    return open_at(FastDisk(), str(root), clean=True, recovery_point=end_offset, config=SMALL)


def bring(log: PartitionLog, cold: ColdRead) -> None:
    job = ReadAhead(log, cold.segment, cold.offset, MAX_BYTES, transactions=cold.transactions)
    job.run()
    assert job.done() == []
    if job.index_is_wrong:
        repair = IndexRepair.take(log, cold.segment)
        if repair is not None:
            repair.run()
            assert repair.done(NOW) is not None


def until_warm(log: PartitionLog, ask: Callable[[], T]) -> T:
    for _ in range(20):
        try:
            return ask()
        except ColdRead as cold:
            bring(log, cold)
    raise AssertionError("it stays cold")


def all_reads(
    log: PartitionLog, read: Callable[[int], tuple[FileRange, list[AbortedTransaction]]]
) -> list[object]:
    found: list[object] = []
    for offset in range(log.end_offset):
        part, aborted = read(offset)
        batches = whole_batches(part.file.pread(part.length, part.position))
        assert batches, offset
        header = batches[0][0]
        found.append((header.base_offset, header.last_offset))
        assert header.last_offset >= offset
        last = batches[-1][0].last_offset
        needed = {each for each in ABORTED if each[2] >= offset and each[1] <= last}
        assert needed <= set(aborted) <= set(ABORTED), offset
    return found


def directly(log: PartitionLog) -> list[object]:
    def read(offset: int) -> tuple[FileRange, list[AbortedTransaction]]:
        part = log.read(offset, MAX_BYTES, limit=log.end_offset, min_one=True)
        return part, log.aborted_in(offset, part)

    return all_reads(log, read)


def resident(log: PartitionLog) -> list[object]:
    def read(offset: int) -> tuple[FileRange, list[AbortedTransaction]]:
        part = until_warm(
            log, lambda: log.read_resident(offset, MAX_BYTES, limit=log.end_offset, min_one=True)
        )
        return part, until_warm(log, lambda: log.aborted_in(offset, part, wait=False))

    return all_reads(log, read)


def by_time(log: PartitionLog) -> list[object]:
    found: list[object] = [log.offset_for_timestamp(when, log.end_offset) for when in range(NOW - 1, NOW + 9)]
    found.append(log.max_timestamp_offset(log.end_offset))
    found += [log.max_timestamp_offset(limit) for limit in (5, 9)]
    return found + [largest_timestamp(segment) for segment in log.segments]


ASKED = {"read": directly, "read_resident": resident, "by_time": by_time}


def flip(path: Path, bit: int) -> bytes:
    good = path.read_bytes()
    changed = bytearray(good)
    changed[bit // 8] ^= 1 << bit % 8
    with path.open("r+b") as file:  # the same file: a descriptor of it may be open
        file.write(changed)
    return good


@pytest.mark.parametrize(
    ("suffix", "way"),
    [
        (files.INDEX, "read"),
        (files.INDEX, "read_resident"),
        (files.INDEX, "by_time"),
        (files.TIME_INDEX, "by_time"),
        (files.TXN_INDEX, "read"),
        (files.TXN_INDEX, "read_resident"),
    ],
)
@pytest.mark.parametrize("running", [True, False], ids=["running", "stopped"])
def test_every_flipped_bit_of_an_index(tmp_path: Path, suffix: str, way: str, running: bool) -> None:
    ask = ASKED[way]
    end_offset = written(tmp_path).end_offset
    log = reopened(tmp_path, end_offset)
    expected = ask(log)
    log.close()
    folder = Path(log.path)
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    paths = sorted(path for path in kept if path.name.endswith(suffix) and kept[path])[:1]
    assert paths
    for path in paths:
        for bit in range(len(kept[path]) * 8):
            if not running:
                flip(path, bit)
            log = reopened(tmp_path, end_offset)
            if running:
                flip(path, bit)
                blocks = log.directory.index_blocks  # what opening has asked for has left memory
                blocks._blocks.clear()
                blocks.held_bytes = 0
            assert ask(log) == expected, (path.name, bit)
            assert log.directory.is_online
            log.close()
            for each in folder.iterdir():
                if each not in kept:
                    each.unlink()
            for each, content in kept.items():
                each.write_bytes(content)
