"""All logs of a broker: placement, restart, checkpoints, deletion, failing directories."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from threading import Barrier, get_ident
from typing import Any
from uuid import UUID

import pytest

from headrace.core.errors import ConfigError, CorruptLog, NotLeader, StorageError, UnknownTopicOrPartition
from headrace.core.ids import TopicPartition
from headrace.log import checkpoints
from headrace.log.directory import LogDirectory
from headrace.log.directory_identity import DirectoryIdentity, read_meta_properties
from headrace.log.manager import LogManager
from headrace.log.os_disk import OsDisk
from tests.unit.log.material import NOW, append, read_records, topic_config, values_of

IDENTITY = DirectoryIdentity("cluster-a", 1)
TOPIC_ID = UUID(int=42)


def uuids(seed: int = 0) -> Callable[[], UUID]:
    random = Random(seed)
    return lambda: UUID(int=random.getrandbits(128))


def manager(
    paths: Sequence[Path],
    identity: DirectoryIdentity = IDENTITY,
    on_failure: Callable[[LogDirectory, StorageError], None] | None = None,
) -> LogManager:
    return LogManager(
        OsDisk(),
        [str(path) for path in paths],
        identity,
        lambda _: topic_config(segment_bytes=400, index_interval_bytes=100),
        new_uuid=uuids(),
        on_failure=on_failure,
    )


def partitions(count: int) -> list[TopicPartition]:
    return [TopicPartition("t", number) for number in range(count)]


def test_new_partitions_go_where_there_are_fewest(tmp_path: Path) -> None:
    logs = manager([tmp_path / "a", tmp_path / "b", tmp_path / "c"])
    for partition in partitions(9):
        logs.create(partition, TOPIC_ID, NOW)
    for name in "abc":
        assert len([p for p in (tmp_path / name).iterdir() if p.is_dir()]) == 3


def test_a_new_partition_goes_where_somebody_asked_for(tmp_path: Path) -> None:
    logs = manager([tmp_path / "a", tmp_path / "b"])
    for partition in partitions(3):
        logs.prefer(partition, logs.directories[0])
    logs.prefer(partitions(3)[2], logs.directories[1])
    placed = [logs.create(partition, TOPIC_ID, NOW).directory for partition in partitions(4)]
    assert placed == [logs.directories[number] for number in (0, 0, 1, 1)]


def test_a_wish_is_granted_once_and_not_by_a_directory_that_failed(tmp_path: Path) -> None:
    logs = manager([tmp_path / "a", tmp_path / "b"])
    first, second = partitions(2)
    for partition in (first, second):
        logs.prefer(partition, logs.directories[1])
    logs.create(first, TOPIC_ID, NOW)
    logs.delete([first], NOW)
    assert logs.create(first, TOPIC_ID, NOW).directory is logs.directories[0]
    logs.directories[1].fail(OSError(errno.EIO, "gone"), "read it")
    assert logs.create(second, TOPIC_ID, NOW).directory is logs.directories[0]


def test_the_oldest_wishes_are_forgotten_when_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.log.manager.MOST_PREFERRED", 2)
    logs = manager([tmp_path / "a", tmp_path / "b"])
    for partition in partitions(3):
        logs.prefer(partition, logs.directories[1])
    placed = [logs.create(partition, TOPIC_ID, NOW).directory for partition in partitions(3)]
    assert placed == [logs.directories[number] for number in (0, 1, 1)]


def test_a_clean_stop_is_remembered(tmp_path: Path) -> None:
    first = manager([tmp_path])
    first.open_all(NOW)
    assert first.broker_epoch_at_stop == -1
    for partition in partitions(3):
        log = first.create(partition, TOPIC_ID, NOW)
        for number in range(10):
            append(log, b"%d" % number)
    first.shut_down(77, dict.fromkeys(partitions(3), 10))
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":77}'
    second = manager([tmp_path])
    assert second.open_all(NOW) == dict.fromkeys(partitions(3), 10)
    assert second.broker_epoch_at_stop == 77
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    for partition in partitions(3):
        log = second.get(partition)
        assert log.topic_id == TOPIC_ID
        assert values_of(read_records(log)) == [b"%d" % number for number in range(10)]


def test_a_log_that_nobody_wrote_to_has_nothing_to_be_rebuilt(tmp_path: Path) -> None:
    """It has no index files. A start after a clean stop once warned of each of them."""
    first = manager([tmp_path])
    first.open_all(NOW)
    empty, written = partitions(2)
    first.create(empty, TOPIC_ID, NOW)
    append(first.create(written, TOPIC_ID, NOW), b"1")
    first.shut_down(77, {})
    second = manager([tmp_path])
    second.open_all(NOW)
    assert second.rebuilt == []


def test_a_killed_process_loses_nothing_it_wrote(tmp_path: Path) -> None:
    first = manager([tmp_path])
    log = first.create(TopicPartition("t", 0), TOPIC_ID, NOW)
    for number in range(30):
        append(log, b"%d" % number)
    first.release()
    second = manager([tmp_path])
    second.open_all(NOW)
    assert second.broker_epoch_at_stop == -1
    assert len(read_records(second.get(TopicPartition("t", 0)))) == 30


def test_a_directory_has_one_broker(tmp_path: Path) -> None:
    first = manager([tmp_path])
    with pytest.raises(ConfigError, match="another broker uses this directory"):
        manager([tmp_path])
    first.release()
    manager([tmp_path]).release()


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        (DirectoryIdentity("cluster-b", 1), "belongs to cluster"),
        (DirectoryIdentity("cluster-a", 2), "belongs to broker 1"),
    ],
)
def test_a_directory_of_somebody_else_is_refused(
    tmp_path: Path, identity: DirectoryIdentity, message: str
) -> None:
    manager([tmp_path]).release()
    with pytest.raises(ConfigError, match=message):
        manager([tmp_path], identity)


def test_meta_properties_keep_the_directory_id(tmp_path: Path) -> None:
    first = manager([tmp_path])
    known = read_meta_properties(OsDisk(), str(tmp_path))
    assert known == {
        "version": "1",
        "cluster.id": "cluster-a",
        "node.id": "1",
        "directory.id": checkpoints.encode_uuid(first.directories[0].uuid),
    }
    first.release()
    second = manager([tmp_path])
    assert second.directories[0].uuid == first.directories[0].uuid


def test_a_deleted_partition_is_renamed_then_removed(tmp_path: Path) -> None:
    logs = manager([tmp_path])
    partition = TopicPartition("t", 0)
    append(logs.create(partition, TOPIC_ID, NOW), b"a")
    for job in logs.take_checkpoint({}):
        job.run()
    logs.delete([partition], NOW)
    with pytest.raises(UnknownTopicOrPartition):
        logs.get(partition)
    (doomed,) = [path.name for path in tmp_path.iterdir() if path.is_dir()]
    assert doomed.startswith("t-0.")
    assert doomed.endswith("-delete")
    assert len(doomed) == len("t-0.") + 32 + len("-delete")
    assert logs.removals.take_due(NOW) == []
    due = logs.removals.take_due(NOW + 60_000)
    assert len(due) == 1
    logs.removals.remove(due)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    again = logs.create(partition, UUID(int=43), NOW)
    assert again.end_offset == 0


def test_a_late_request_for_a_deleted_partition_harms_nobody(tmp_path: Path) -> None:
    logs = manager([tmp_path])
    partition = TopicPartition("t", 0)
    late = logs.create(partition, TOPIC_ID, NOW)
    append(late, b"a")
    logs.delete([partition], NOW)
    for act in (
        lambda: append(late, b"b"),
        lambda: late.read(0, 100, limit=1, min_one=True),
        lambda: late.enforce_retention(NOW, 1),
        lambda: late.truncate_to(0),
    ):
        with pytest.raises(NotLeader):
            act()
    assert late.take_flush() is None
    assert logs.directories[0].is_online


def test_a_recreated_partition_inherits_nothing(tmp_path: Path) -> None:
    logs = manager([tmp_path])
    partition = TopicPartition("t", 0)
    log = logs.create(partition, TOPIC_ID, NOW)
    for _ in range(10):
        append(log, b"a")
    log.flush()
    log.delete_records_before(3)
    for job in logs.take_checkpoint({}):
        job.run()
    logs.delete([partition], NOW)
    logs.create(partition, UUID(int=43), NOW)
    logs.release()
    after = manager([tmp_path])
    after.open_all(NOW)
    log = after.get(partition)
    assert (log.log_start_offset, log.end_offset, log.topic_id) == (0, 0, UUID(int=43))


def test_log_starts_come_back_from_their_checkpoint(tmp_path: Path) -> None:
    logs = manager([tmp_path])
    log = logs.create(TopicPartition("t", 0), TOPIC_ID, NOW)
    for _ in range(5):
        append(log, b"a")
    log.delete_records_before(2)
    for job in logs.take_checkpoint({}):
        job.run()
    logs.release()
    after = manager([tmp_path])
    after.open_all(NOW)
    assert after.get(TopicPartition("t", 0)).log_start_offset == 2


def test_one_failing_directory_leaves_the_others_working(tmp_path: Path) -> None:
    failed: list[str] = []
    logs = manager([tmp_path / "a", tmp_path / "b"], on_failure=lambda where, _: failed.append(where.path))
    for partition in partitions(2):
        logs.create(partition, TOPIC_ID, NOW)
    broken = logs.get(TopicPartition("t", 0)).directory
    broken.fail(OSError(errno.EIO, "Input/output error"), "test")
    broken.fail(OSError(errno.EIO, "Input/output error"), "test again")
    assert failed == [broken.path]
    with pytest.raises(StorageError, match="is offline"):
        logs.get(TopicPartition("t", 0))
    append(logs.get(TopicPartition("t", 1)), b"a")
    created = logs.create(TopicPartition("u", 0), TOPIC_ID, NOW)
    assert created.directory is not broken
    logs.shut_down(5)
    assert not (Path(broken.path) / ".kafka_cleanshutdown").exists()
    assert (Path(created.directory.path) / ".kafka_cleanshutdown").exists()


def test_a_full_disk_that_then_fails_may_have_lost_something(tmp_path: Path) -> None:
    """It is offline already when the stop syncs it: whoever trusts what is on it must hear of that too."""
    lost: list[str] = []
    directory = LogDirectory(OsDisk(), str(tmp_path), TOPIC_ID, on_loss=lambda where: lost.append(where.path))
    directory.fail(OSError(errno.ENOSPC, "No space left on device"), "append")
    assert (directory.may_have_lost, lost) == (False, [])
    directory.fail(OSError(errno.EIO, "Input/output error"), "sync")
    directory.fail(OSError(errno.EIO, "Input/output error"), "sync again")
    assert (directory.may_have_lost, lost) == (True, [str(tmp_path)])


def test_without_any_directory_there_is_no_manager(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="no log directory can be used"):
        manager([tmp_path / "file"])


def test_a_partition_in_two_directories_is_served_from_neither(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    logs = manager(paths)
    logs.create(TopicPartition("t", 0), TOPIC_ID, NOW)
    logs.release()
    for path in paths:
        (path / "t-0").mkdir(exist_ok=True)
    after = manager(paths)
    after.open_all(NOW)
    with pytest.raises(StorageError, match="move one of them away"):
        after.get(TopicPartition("t", 0))


def test_sealed_segments_ask_for_a_flush(tmp_path: Path) -> None:
    logs = manager([tmp_path])
    log = logs.create(TopicPartition("t", 0), TOPIC_ID, NOW)
    log.flush()
    append(log, b"a")
    assert logs.due_flushes(NOW) == []
    for _ in range(10):
        append(log, b"a")
    assert logs.due_flushes(NOW) == [log]
    job = log.take_flush()
    assert job is not None
    assert log.take_flush() is None
    job.run()
    append(log, b"later")
    job.done()
    assert (log.recovery_point, log.end_offset) == (11, 12)
    assert log.unflushed_messages == 1


def test_flushes_are_due_in_the_order_of_the_writes(tmp_path: Path) -> None:
    """Not in that of addresses in memory, which differ from run to run."""
    logs = manager([tmp_path])
    names = partitions(20)
    for name in names:
        logs.create(name, TOPIC_ID, NOW)
    for name in reversed(names):
        log = logs.get(name)
        for _ in range(11):
            append(log, b"a")
    assert [log.topic_partition for log in logs.due_flushes(NOW)] == names[::-1]


def test_a_log_that_turns_out_to_be_damaged_is_kept_and_served_no_more(tmp_path: Path) -> None:
    logs = manager([tmp_path])
    (name,) = partitions(1)
    log = logs.create(name, TOPIC_ID, NOW)
    append(log, b"a")
    logs.quarantine(name, CorruptLog("a bit has flipped"))
    assert log.closed
    assert logs.quarantined_ends == {name: (log.latest_epoch, 1)}, "what a restart may bring back"
    with pytest.raises(StorageError, match="a bit has flipped"):
        logs.get(name)
    with pytest.raises(StorageError):
        logs.create(name, TOPIC_ID, NOW)
    aside = Path(logs.set_quarantined_aside(name))
    assert next(aside.glob("*.log")).stat().st_size > 0
    assert not logs.quarantined_ends
    assert logs.create(name, TOPIC_ID, NOW).end_offset == 0


def test_a_damaged_log_that_is_in_two_directories_is_not_touched(tmp_path: Path) -> None:
    logs = manager([tmp_path / "a", tmp_path / "b"])
    (name,) = partitions(1)
    log = logs.create(name, TOPIC_ID, NOW)
    logs.quarantine(name, CorruptLog("a bit has flipped"))
    for directory in logs.directories:
        Path(directory.path, str(name)).mkdir(exist_ok=True)
    with pytest.raises(StorageError, match="2 working directories"):
        logs.set_quarantined_aside(name)
    assert Path(log.path).is_dir()


def test_a_log_that_nothing_was_written_to_needs_no_sync_to_be_closed(tmp_path: Path) -> None:
    logs = manager([tmp_path])
    logs.open_all(NOW)
    for partition in partitions(3):
        logs.create(partition, TOPIC_ID, NOW)
    assert not any(directory.dirty for directory in logs.directories)
    append(logs.logs[TopicPartition("t", 1)], b"kept")
    logs.shut_down(5)
    again = manager([tmp_path])
    again.open_all(NOW)
    found = [values_of(read_records(again.logs[partition])) for partition in partitions(3)]
    assert found == [[], [b"kept"], []]
    assert {log.topic_id for log in again.logs.values()} == {TOPIC_ID}
    again.release()


def test_logs_are_closed_by_as_many_threads_as_configured(tmp_path: Path) -> None:
    logs = manager([tmp_path / "a"])
    logs.open_all(NOW)
    logs.threads_per_directory = 3
    together, threads = Barrier(3, timeout=30), set()

    class Closing:
        def close(self) -> None:
            together.wait()
            threads.add(get_ident())

    closing: Any = [Closing() for _ in range(9)]
    logs._close(closing)
    logs.release()
    assert len(threads) == 3
