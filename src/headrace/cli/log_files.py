"""Reads the files of a log while no broker has to run: segments, indexes, producer snapshots, metadata.

Every reader yields plain dictionaries with a "kind", ready to be printed. What is broken is an entry of the
kind "fault", and ends the file: after it nothing can be trusted.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from struct import Struct
from typing import Any, Final

from headrace.cli.log_values import control_fields, is_metadata, metadata_fields
from headrace.cli.render import printable
from headrace.client.errors import ClientFailure
from headrace.core.errors import HeadraceError
from headrace.log import files, producer_snapshot, segments
from headrace.protocol import batch as batches
from headrace.protocol.compression import Compression
from headrace.protocol.records import Record

Entry = dict[str, Any]

METADATA_SNAPSHOT: Final = ".checkpoint"
_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")
_TXN_ENTRY: Final = Struct(">hqqqq")
_READABLE: Final = (
    files.LOG,
    files.INDEX,
    files.TIME_INDEX,
    files.TXN_INDEX,
    files.SNAPSHOT,
    METADATA_SNAPSHOT,
)


def find_files(paths: Iterable[str]) -> list[Path]:
    """The files themselves, and all readable files below the directories, in order of their names."""
    found: list[Path] = []
    for name in paths:
        path = Path(name)
        if path.is_dir():
            below = sorted(item for item in path.rglob("*") if item.suffix in _READABLE and item.is_file())
            if not below:
                raise ClientFailure(
                    f"{name} holds no files of a log", "name a partition's directory, as DATA/orders-0"
                )
            found += below
        elif path.suffix not in _READABLE:
            raise ClientFailure(
                f"{name} is none of {' '.join(_READABLE)}", "name a file of a log, or a directory"
            )
        else:
            found.append(path)
    return found


def read_file(path: Path, *, records: bool) -> Iterator[Entry]:
    """The entries of one file, by its suffix."""
    if path.suffix in (files.LOG, METADATA_SNAPSHOT):
        return _read_log(path, records)
    return _READERS[path.suffix](path)


def _read_log(path: Path, records: bool) -> Iterator[Entry]:
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
            position = 0
            metadata = is_metadata(path)
            while position < len(view):
                try:
                    header = batches.check(view, position)
                except HeadraceError as error:
                    yield _fault(f"at position {position}: {error}", position=position)
                    return
                yield _batch(header, position)
                if records:
                    yield from _records(view, position, header, metadata)
                position += header.size


def _batch(header: batches.BatchHeader, position: int) -> Entry:
    known = header.compression in Compression.__members__.values()
    waits = header.attributes & batches.DELETE_HORIZON_FLAG
    horizon = {"delete_horizon": header.base_timestamp} if waits else {}
    return {
        "kind": "batch",
        "position": position,
        "size": header.size,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "compression": Compression(header.compression).name.lower() if known else str(header.compression),
        "leader_epoch": header.leader_epoch,
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "timestamp_type": "append" if header.is_log_append_time else "create",
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        **horizon,
        "crc": header.crc,
    }


def _records(view: memoryview, position: int, header: batches.BatchHeader, metadata: bool) -> Iterator[Entry]:
    try:
        for record in segments.records_in(view, position):
            yield _record(record, header, metadata)
    except HeadraceError as error:
        yield _fault(f"in the batch at position {position}: {error}", position=position)


def _record(record: Record, header: batches.BatchHeader, metadata: bool) -> Entry:
    entry: Entry = {"kind": "record", "offset": record.offset, "timestamp": record.timestamp}
    if header.is_control:
        return {**entry, **control_fields(record)}
    if metadata:
        return {**entry, **metadata_fields(record)}
    return {
        **entry,
        "key": printable(record.key),
        "value": printable(record.value),
        "headers": [[name, printable(value)] for name, value in record.headers],
    }


def _read_index(path: Path) -> Iterator[Entry]:
    base = _base_offset(path)
    last = -1
    for at, (relative, position) in _fixed_entries(path, _OFFSET_ENTRY):
        if relative == 0 and position == 0:
            return  # the rest was reserved and never written
        if relative <= last:
            yield _fault(f"entry {at}: offset {base + relative} after {base + last}")
            return
        last = relative
        yield {"kind": "index", "offset": base + relative, "position": position}


def _read_time_index(path: Path) -> Iterator[Entry]:
    base = _base_offset(path)
    last = -1
    for at, (timestamp, relative) in _fixed_entries(path, _TIME_ENTRY):
        if timestamp == 0 and relative == 0:
            return
        if timestamp < last:
            yield _fault(f"entry {at}: time {timestamp} after {last}")
            return
        last = timestamp
        yield {"kind": "timeindex", "timestamp": timestamp, "offset": base + relative}


def _read_txn_index(path: Path) -> Iterator[Entry]:
    for _, (_, producer_id, first, last, stable) in _fixed_entries(path, _TXN_ENTRY):
        yield {
            "kind": "aborted",
            "producer_id": producer_id,
            "first_offset": first,
            "last_offset": last,
            "last_stable_offset": stable,
        }


def _read_snapshot(path: Path) -> Iterator[Entry]:
    try:
        for entry in producer_snapshot.decode(path.read_bytes()):
            yield {"kind": "producer", **entry._asdict()}
    except HeadraceError as error:
        yield _fault(str(error))


def _fixed_entries(path: Path, layout: Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    content = path.read_bytes()
    whole = len(content) - len(content) % layout.size
    yield from enumerate(layout.iter_unpack(content[:whole]))


def _base_offset(path: Path) -> int:
    named = files.parse_numbered(path.name)
    if named is None:
        raise ClientFailure(
            f"{path.name} does not begin with an offset of 20 digits", "do not rename index files"
        )
    return named[0]


def _fault(text: str, **where: int) -> Entry:
    return {"kind": "fault", **where, "error": text}


_READERS: Final[dict[str, Callable[[Path], Iterator[Entry]]]] = {
    files.INDEX: _read_index,
    files.TIME_INDEX: _read_time_index,
    files.TXN_INDEX: _read_txn_index,
    files.SNAPSHOT: _read_snapshot,
}
