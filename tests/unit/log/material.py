"""Logs, batches and configurations for the tests of the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from headrace.config.broker import BrokerConfig
from headrace.config.topic import TopicConfig, resolve_topic
from headrace.core.ids import TopicPartition
from headrace.core.ports import Disk
from headrace.log.claims_file import FirstBatch
from headrace.log.directory import LogDirectory
from headrace.log.directory_identity import DirectoryIdentity
from headrace.log.files import read_all
from headrace.log.manager import LogManager
from headrace.log.os_disk import OsDisk
from headrace.log.partition_log import AppendResult, PartitionLog
from headrace.log.recovery import open_log
from headrace.log.wholeness import ALL_ON, Claims, Wholeness
from headrace.protocol.batch import BatchHeader, check
from headrace.protocol.records import NewRecord, Record, decode_records, encode_batch

NOW = 1_700_000_000_000
PARTITION = TopicPartition("orders", 0)
_BASE = resolve_topic(BrokerConfig.parse({"broker.id": "1", "log.dirs": "/nowhere"}), {}, {}, {})


def topic_config(**changes: Any) -> TopicConfig:
    """Kafka's defaults with these changes; segments may be far smaller than Kafka allows."""
    return replace(_BASE, **changes)


def records(*values: bytes, timestamp: int = NOW, key: bytes | None = None) -> list[NewRecord]:
    return [NewRecord(value, key, timestamp + index) for index, value in enumerate(values)]


def batch_of(*values: bytes, timestamp: int = NOW, **fields: Any) -> tuple[bytearray, BatchHeader]:
    batch = encode_batch(records(*values, timestamp=timestamp), **fields)
    return batch, check(batch)


def append(
    log: PartitionLog,
    *values: bytes,
    timestamp: int = NOW,
    leader_epoch: int = 0,
    now_ms: int = NOW,
    **fields: Any,
) -> AppendResult:
    batch, header = batch_of(*values, timestamp=timestamp, **fields)
    return log.append_as_leader(batch, header, leader_epoch=leader_epoch, now_ms=now_ms)


def new_directory(disk: Disk, path: str) -> LogDirectory:
    disk.make_dirs(path)
    return LogDirectory(disk, path, UUID(int=7))


def open_at(
    disk: Disk,
    root: str,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    config: TopicConfig | None = None,
    partition: TopicPartition = PARTITION,
    accept_loss: bool = False,
    high_watermark: int = 0,
    lost_nothing: bool = False,
    first_batch: FirstBatch | None = None,
    on_rebuilt: Callable[[str], None] = lambda _: None,
) -> PartitionLog:
    """Open the log of `partition` under `root` as a manager would; a new one where there is none."""
    path = f"{root}/{partition}"
    disk.make_dirs(path)
    disk.sync_dir(root)
    disk.sync_dir(root.rpartition("/")[0] or "/")
    directory = new_directory(disk, root)
    directory.on_rebuilt = on_rebuilt
    return open_log(
        directory,
        path,
        partition,
        config or topic_config(),
        Claims(
            recovery_point,
            log_start_offset,
            high_watermark,
            lost_nothing or clean,
            first_batch=first_batch,
        ),
        clean=clean,
        now_ms=NOW,
        accept_loss=accept_loss,
        on_rebuilt=on_rebuilt,
    )


def read_bytes(log: PartitionLog, offset: int, max_bytes: int = 1 << 30, limit: int | None = None) -> bytes:
    found = log.read(offset, max_bytes, limit=log.end_offset if limit is None else limit, min_one=True)
    return found.file.pread(found.length, found.position)


def whole_batches(data: bytes) -> list[tuple[BatchHeader, list[Record]]]:
    """Every batch of an answer, its checksum verified; a cut one at the end is left out."""
    at, found = 0, []
    while len(data) - at >= 61:
        size = int.from_bytes(data[at + 8 : at + 12], "big") + 12
        if at + size > len(data):
            break
        header = check(data, at, at + size)
        found.append((header, list(decode_records(data[at : at + size]))))
        at += size
    return found


def read_records(log: PartitionLog, offset: int | None = None, limit: int | None = None) -> list[Record]:
    """All records from `offset` on, through `read`, as a consumer would ask."""
    at = log.log_start_offset if offset is None else offset
    end = log.end_offset if limit is None else limit
    start = at
    found: list[Record] = []
    while at < end:
        batches = whole_batches(read_bytes(log, at, limit=end))
        if not batches:
            break
        for header, inside in batches:
            found += [record for record in inside if record.offset >= start]
            at = header.next_offset
    return found


def values_of(found: Sequence[Record]) -> list[bytes | None]:
    return [record.value for record in found]


def index_entries(disk: Disk, path: str, size: int) -> list[bytes]:
    content = read_all(disk, path)
    assert len(content) % size == 0
    return [content[at : at + size] for at in range(0, len(content), size)]


def open_manager(path: Path, config: TopicConfig, wholeness: Wholeness = ALL_ON) -> LogManager:
    """Of real files, opened as a broker does at its start."""
    manager = LogManager(
        OsDisk(),
        [str(path)],
        DirectoryIdentity("c", 1),
        lambda _: config,
        new_uuid=uuid4,
        wholeness=wholeness,
    )
    manager.open_all(NOW)
    return manager
