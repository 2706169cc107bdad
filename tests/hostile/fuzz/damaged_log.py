"""A small log, damaged as some bytes say, and opened: what it serves afterwards must be whole.

The bytes are read as a list of damages: which file, what is done to it, where, with what. So whatever the
fuzzer invents is a log of ours with something wrong, and not noise that is refused at its first byte.
"""

from __future__ import annotations

from functools import cache
from typing import Final
from uuid import UUID

from headrace.core.errors import CorruptLog
from headrace.core.ids import TopicPartition
from headrace.log.directory_identity import DirectoryIdentity
from headrace.log.manager import LogManager
from headrace.log.partition_log import PartitionLog
from headrace.log.scan import verify_range
from headrace.protocol.batch import check, iterate
from headrace.protocol.records import encode_batch
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, records, topic_config

_ROOT: Final = "/data"
_PARTITION: Final = TopicPartition("t", 0)
_CONFIG: Final = topic_config(segment_bytes=600, index_interval_bytes=100)
_DAMAGES: Final = 6
_RECORDS: Final = 24


def _manager(disk: SimulatedDisk) -> LogManager:
    return LogManager(
        disk,
        [_ROOT],
        DirectoryIdentity("c", 1),
        lambda _: _CONFIG,
        new_uuid=lambda: UUID(int=77),
        threads_per_directory=1,
    )


def _files(disk: SimulatedDisk, path: str = _ROOT) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name in disk.list(path):
        inner = f"{path}/{name}"
        try:
            size = disk.size(inner)
        except OSError:
            found |= _files(disk, inner)
            continue
        found[inner] = disk.open(inner).pread(size, 0)
    return found


@cache
def whole(clean: bool) -> dict[str, bytes]:
    """The files of a log with several segments, after a clean stop or as a kill leaves them."""
    disk = SimulatedDisk(1)
    manager = _manager(disk)
    manager.open_all(NOW)
    log = manager.create(_PARTITION, UUID(int=5), NOW)
    for number in range(_RECORDS):
        written = encode_batch(
            records(b"%d" % number * 20), producer_id=3, producer_epoch=0, base_sequence=number
        )
        log.append_as_leader(written, check(written), leader_epoch=number // 9, now_ms=NOW)
    log.flush()
    for job in manager.take_checkpoint():
        job.run()
        job.done()
    if clean:
        manager.shut_down(7)
    return _files(disk)


def damaged(data: bytes) -> dict[str, bytes]:
    given = iter(data)

    def byte() -> int:
        return next(given, 0)

    found = dict(whole(bool(byte() & 1)))
    for _ in range(byte() % _DAMAGES):
        names = sorted(found)
        if not names:
            break
        name = names[byte() % len(names)]
        content, kind, place = found[name], byte() % 7, byte() << 8 | byte()
        at = place % (len(content) + 1)
        if kind == 0:
            del found[name]
        elif kind == 1:
            found[name] = content[:at]
        elif kind == 2:
            found[name] = content[:at] + bytes(min(64, len(content) - at)) + content[at + 64 :]
        elif kind == 3 and content:
            at = min(at, len(content) - 1)
            found[name] = content[:at] + bytes([content[at] ^ (1 << byte() % 8)]) + content[at + 1 :]
        elif kind == 4:
            other = names[byte() % len(names)]
            found[name], found[other] = found[other], content
        elif kind == 5:
            found[name] = content[:at] + bytes(byte() for _ in range(byte() % 32)) + content[at:]
        else:
            found[name] = bytes(byte() for _ in range(byte()))
    return found


def open_damaged(data: bytes) -> None:
    disk = SimulatedDisk(1)
    for path, content in damaged(data).items():
        disk.make_dirs(path.rpartition("/")[0])
        disk.open(path, create=True).pwrite(content, 0)
    manager = _manager(disk)
    manager.open_all(NOW)
    for log in manager.logs.values():
        _read_through(log)


def _read_through(log: PartitionLog) -> None:
    """Until damage is found, as a broker finds it in what it reads from the disk. No read raises, and what
    passes that check is in order, with good checksums."""
    offset = log.log_start_offset
    while offset < log.end_offset:
        part = log.read(offset, 1 << 20, limit=log.end_offset, min_one=True)
        served = part.file.pread(part.length, part.position)
        try:
            verify_range(part.file, part.position, part.length)
        except CorruptLog:
            return
        before = offset
        for at, header in iterate(served):
            check(served, at, at + header.size)
            assert header.last_offset >= offset, "the log went back"
            offset = header.last_offset + 1
        assert offset > before, f"nothing at offset {offset}, and the log ends at {log.end_offset}"
