"""The metadata log on a real disk, as the journal of the local coordination."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from headrace.config.broker import BrokerConfig
from headrace.config.topic import TopicConfig, resolve_topic
from headrace.controller import log_journal
from headrace.controller.codec import encode_metadata_batch, encode_record
from headrace.controller.log_journal import METADATA_LOG_CONFIGS, LogJournal
from headrace.controller.operations import NewTopic
from headrace.controller.shell import Controller
from headrace.coordination.local import LocalCoordination
from headrace.core.errors import CorruptBatch, CorruptLog, StorageError
from headrace.core.ids import TopicPartition
from headrace.log.directory_identity import DirectoryIdentity
from headrace.log.manager import LogManager
from headrace.log.os_disk import OsDisk
from headrace.log.partition_log import PartitionLog
from headrace.protocol.stored.config_record import ConfigRecord
from tests.unit.controller.cluster import said
from tests.unit.controller.test_shell import controller_on, enter

METADATA = TopicPartition("__cluster_metadata", 0)


def config_of(name: str, **overrides: str) -> TopicConfig:
    broker = BrokerConfig.parse({"listeners": "PLAINTEXT://127.0.0.1:0"})
    return resolve_topic(broker, {}, {}, {**METADATA_LOG_CONFIGS, **overrides})


def open_manager(path: Path) -> LogManager:
    identity = DirectoryIdentity("cluster", 1)
    manager = LogManager(OsDisk(), [str(path)], identity, config_of, new_uuid=uuid4)
    manager.open_all(0)
    return manager


def open_log(manager: LogManager) -> PartitionLog:
    if METADATA in manager.logs:
        return manager.logs[METADATA]
    return manager.create(METADATA, uuid4(), 0)


def journal_of(log: PartitionLog) -> LogJournal:
    return LogJournal(log, now_ms=lambda: 1000)


def batch_at(sequence: int, size: int = 10) -> bytes:
    record = ConfigRecord(resource_type=2, resource_name="t", name="n", value="v" * size)
    return encode_metadata_batch(
        [encode_record(record)], base_offset=sequence, controller_epoch=sequence, timestamp_ms=5
    )


@pytest.fixture
def manager(tmp_path: Path) -> LogManager:
    return open_manager(tmp_path)


@asynccontextmanager
async def running(path: Path) -> AsyncIterator[Controller]:
    manager = open_manager(path)
    journal = journal_of(open_log(manager))
    controller = await enter(controller_on(LocalCoordination(journal), journal))
    try:
        yield controller
    finally:
        await controller.stop()
        manager.release()


async def test_what_is_appended_is_read_back(manager: LogManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_journal, "READ_BYTES", 250)
    journal = journal_of(open_log(manager))
    batches = [batch_at(sequence, 100 + sequence) for sequence in range(20)]
    for batch in batches:
        journal.append(batch)
    await journal.sync()
    assert (journal.end(), journal.latest_epoch()) == (20, 19)
    assert list(journal.read(0)) == batches
    assert list(journal.read(13)) == batches[13:]
    assert list(journal.read(20)) == []


async def test_a_sync_makes_the_log_durable_up_to_its_end(manager: LogManager) -> None:
    log = open_log(manager)
    journal = journal_of(log)
    journal.append(batch_at(0))
    assert log.recovery_point == 0
    await journal.sync()
    assert log.recovery_point == 1


async def test_a_sync_waits_for_one_that_began_before_the_append(manager: LogManager) -> None:
    log = open_log(manager)
    journal = journal_of(log)
    earlier = log.take_flush()
    assert earlier is not None
    journal.append(batch_at(0))
    ours = asyncio.create_task(journal.sync())
    await asyncio.sleep(0.01)
    assert not ours.done()
    earlier.run()
    earlier.done()
    await ours
    assert log.recovery_point == 1


async def test_a_failed_sync_is_an_error_and_not_tried_again(manager: LogManager) -> None:
    log = open_log(manager)

    async def fail(call: Callable[[], None]) -> None:
        raise StorageError("the disk is gone")

    journal = LogJournal(log, now_ms=lambda: 1000, offload=fail)
    journal.append(batch_at(0))
    with pytest.raises(StorageError):
        await journal.sync()
    assert log.recovery_point == 0


async def test_a_closed_log_takes_no_sync(manager: LogManager) -> None:
    log = open_log(manager)
    journal = journal_of(log)
    log.close()
    with pytest.raises(StorageError):
        await journal.sync()


async def test_a_log_without_its_beginning_is_refused(manager: LogManager) -> None:
    log = open_log(manager)
    journal = journal_of(log)
    for sequence in range(5):
        journal.append(batch_at(sequence))
    log.delete_records_before(3)
    with pytest.raises(CorruptLog):
        journal_of(log)


async def test_a_controller_finds_its_metadata_again(tmp_path: Path) -> None:
    async with running(tmp_path) as controller:
        await controller.create_topics([NewTopic("t", 3, configs=[("retention.ms", "5")])])
        before = said(controller.image)
    async with running(tmp_path) as controller:
        assert len(said(controller.image)) == len(before)
        assert list(controller.image.topics_by_name["t"].leader_epochs) == [1, 1, 1]
        assert controller.image.topic_configs("t") == {"retention.ms": "5"}
        assert controller.epoch == 1


async def test_a_flipped_bit_in_the_metadata_is_not_believed(tmp_path: Path) -> None:
    """A clean start reads no batch. A broker once had another replica in its metadata than all others."""
    manager = open_manager(tmp_path)
    log = manager.create(METADATA, uuid4(), 0)
    batch = encode_metadata_batch(
        [encode_record(ConfigRecord(resource_name="t", name="a", value="b"))],
        base_offset=0,
        controller_epoch=0,
        timestamp_ms=0,
    )
    log.append_as_follower(batch)
    (file,) = Path(log.path).glob("*.log")
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(CorruptBatch):
        list(LogJournal(log, now_ms=lambda: 0).read(0))
    manager.release()
