"""Directories that fail, vanish or disagree with the metadata, under a running or starting broker."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from headrace.client import health
from headrace.client.cluster import Cluster as Client
from headrace.core.errors import CorruptLog, StorageError
from headrace.core.ids import TopicPartition as Partition
from headrace.log import checkpoints, claims_file, retention
from headrace.log.partition_log import PartitionLog
from headrace.testing.cluster import Cluster
from tests.host import Stopwatch
from tests.integration.real_client import admin, create, eventually, read, send, send_all, watermarks


def two_directories(tmp_path: Path) -> tuple[dict[str, str], list[Path]]:
    directories = [tmp_path / "a", tmp_path / "b"]
    return {"log.dirs": ",".join(map(str, directories))}, directories


def fail(cluster: Cluster, path: Path, number: int) -> None:
    (directory,) = [d for d in cluster.broker.storage.logs.directories if d.path == str(path)]
    cluster.call(lambda: directory.fail(OSError(number, os.strerror(number)), "try it out"))


def partition_in(cluster: Cluster, path: Path) -> int:
    logs = cluster.broker.storage.logs.logs
    return next(n.partition for n, log in logs.items() if n.topic == "t" and log.directory.path == str(path))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_one_directory_goes_offline_and_the_others_serve(tmp_path: Path, number: int) -> None:
    properties, (first, second) = two_directories(tmp_path)
    with Cluster(properties, directory=tmp_path) as cluster:
        create(cluster.bootstrap, "t", 4)
        healthy, lost = partition_in(cluster, first), partition_in(cluster, second)
        fail(cluster, second, number)
        log = cluster.broker.partitions.get("t", lost).log
        end = log.end_offset
        outcome = send(cluster.bootstrap, "t", [b"x"], partition=lost)
        assert outcome[0] is not None
        assert outcome[0].code() in (KafkaError.KAFKA_STORAGE_ERROR, KafkaError._MSG_TIMED_OUT)
        assert log.end_offset == end
        send_all(cluster.bootstrap, "t", [b"x"], partition=healthy)
        create(cluster.bootstrap, "later", 2)
        assert len(os.listdir(second)) < len(os.listdir(first))


def test_the_broker_gives_up_when_its_metadata_cannot_be_written(tmp_path: Path) -> None:
    properties, (first, _) = two_directories(tmp_path)
    with Cluster(properties, directory=tmp_path) as cluster:
        fail(cluster, first, errno.EIO)
        client = admin(cluster.bootstrap)
        from confluent_kafka.admin import NewTopic

        client.create_topics([NewTopic("never", 1, 1)], request_timeout=1)
        eventually(lambda: cluster.broker.runtime.failure.done())


def test_metadata_is_not_begun_anew_while_a_directory_is_missing(tmp_path: Path) -> None:
    properties, (first, _) = two_directories(tmp_path)
    with Cluster(properties, directory=tmp_path) as cluster:
        create(cluster.bootstrap, "t", 4)
    first.rename(tmp_path / "unplugged")
    first.write_text("a file where the directory was")
    with pytest.raises(StorageError, match="__cluster_metadata-0"):
        Cluster(properties, directory=tmp_path).start()
    first.unlink()
    (tmp_path / "unplugged").rename(first)
    with Cluster(properties, directory=tmp_path) as cluster:
        assert "t" in admin(cluster.bootstrap).list_topics(timeout=10).topics


@pytest.mark.parametrize("in_its_place", ["a file", "an empty mount point"])
def test_what_a_missing_disk_holds_is_offline_and_not_begun_anew(tmp_path: Path, in_its_place: str) -> None:
    """It is the only copy: an empty one would be served as if nothing had been written, and take writes."""
    properties, (first, second) = two_directories(tmp_path)
    with Cluster(properties, directory=tmp_path) as cluster:
        create(cluster.bootstrap, "t", 4)
        healthy, lost = partition_in(cluster, first), partition_in(cluster, second)
        send_all(cluster.bootstrap, "t", [b"kept"], partition=lost)
    second.rename(tmp_path / "unplugged")
    if in_its_place == "a file":
        second.write_text("a file where the directory was")
    else:
        second.mkdir()
    with Cluster(properties, directory=tmp_path) as cluster:
        cluster.restart()  # nor is it forgotten by the next start
        (outcome,) = send(cluster.bootstrap, "t", [b"x"], partition=lost)
        assert outcome is not None
        assert outcome.code() in (KafkaError.KAFKA_STORAGE_ERROR, KafkaError._MSG_TIMED_OUT)
        send_all(cluster.bootstrap, "t", [b"x"], partition=healthy)
        seen = cluster.run(health_of(cluster.bootstrap))
        assert ("t", lost) in seen.offline
        assert ("t", healthy) not in seen.offline
        assert sorted(cluster.call(lambda: list(cluster.broker.partitions.offline))) == sorted(seen.offline)
        assert not list(tmp_path.glob(f"[ab]/t-{lost}"))
        create(cluster.bootstrap, "later", 2)
        send_all(cluster.bootstrap, "later", [b"x"], partition=1)
    second.unlink() if second.is_file() else shutil.rmtree(second)
    (tmp_path / "unplugged").rename(second)
    with Cluster(properties, directory=tmp_path) as cluster:
        assert [message.value() for message in read(cluster.bootstrap, "t", 1, partition=lost)] == [b"kept"]


def test_a_missing_folder_is_not_begun_anew_until_it_is_given_up(tmp_path: Path) -> None:
    """It was the only copy, and an empty log was served in its place, without a word. To give it up, do what
    docs/operations.md says."""
    with Cluster(directory=tmp_path) as cluster:
        create(cluster.bootstrap, "t", 2)
        send_all(cluster.bootstrap, "t", [b"kept"], partition=1)
    (tmp_path / "t-1").rename(tmp_path.with_name("elsewhere"))
    with Cluster(directory=tmp_path) as cluster:
        cluster.restart()  # nor is it forgotten by the next start
        (outcome,) = send(cluster.bootstrap, "t", [b"x"], partition=1)
        assert outcome is not None
        assert outcome.code() in (KafkaError.KAFKA_STORAGE_ERROR, KafkaError._MSG_TIMED_OUT)
        assert ("t", 1) in cluster.run(health_of(cluster.bootstrap)).offline
        send_all(cluster.bootstrap, "t", [b"x"], partition=0)
    for path in tmp_path.glob("*-offset-checkpoint"):
        known = checkpoints.parse_offsets(path.read_bytes())
        known.pop(Partition("t", 1), None)
        path.write_bytes(checkpoints.format_offsets(known))
    (tmp_path / claims_file.NAME).unlink()
    with Cluster(directory=tmp_path) as cluster:
        send_all(cluster.bootstrap, "t", [b"new"], partition=1)
        assert [message.value() for message in read(cluster.bootstrap, "t", 1, partition=1)] == [b"new"]


def test_the_folder_of_a_deleted_topic_is_not_missed_after_a_crash(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path / "before") as cluster:
        create(cluster.bootstrap, "t")
        send_all(cluster.bootstrap, "t", [b"old"])
        cluster.restart()  # its checkpoints know it now
        client = admin(cluster.bootstrap)
        client.delete_topics(["t"])["t"].result(10)
        copy = crashed_copy(cluster, tmp_path / "after")
    with Cluster(directory=copy) as cluster:
        assert not cluster.call(lambda: list(cluster.broker.partitions.offline))
        create(cluster.bootstrap, "t")
        send_all(cluster.bootstrap, "t", [b"new"])
        assert [message.value() for message in read(cluster.bootstrap, "t", 1)] == [b"new"]


async def health_of(bootstrap: str) -> health.Health:
    async with Client(bootstrap) as client:
        return health.judge(await health.gather(client))


def test_a_directory_that_fails_while_the_broker_runs_is_seen_in_its_health(tmp_path: Path) -> None:
    properties, (first, second) = two_directories(tmp_path)
    with Cluster(properties, directory=tmp_path) as cluster:
        create(cluster.bootstrap, "t", 4)
        healthy, lost = partition_in(cluster, first), partition_in(cluster, second)
        assert cluster.run(health_of(cluster.bootstrap)).verdict == "healthy"
        fail(cluster, second, errno.EIO)
        seen = cluster.run(health_of(cluster.bootstrap))
        assert ("t", lost) in seen.offline
        assert ("t", healthy) not in seen.offline


def crashed_copy(cluster: Cluster, to: Path) -> Path:
    """The directory as a kill -9 at this moment would leave it."""
    shutil.copytree(cluster.directory, to, ignore=shutil.ignore_patterns("*.tmp"))  # they come and go
    (to / ".lock").unlink(missing_ok=True)
    return to


def test_deleted_records_stay_deleted_after_a_crash(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path / "before") as cluster:
        create(cluster.bootstrap, "t")
        send_all(cluster.bootstrap, "t", [b"a", b"b", b"c"])
        client = admin(cluster.bootstrap)
        (done,) = client.delete_records([TopicPartition("t", 0, 2)]).values()
        assert done.result(10).low_watermark == 2
        copy = crashed_copy(cluster, tmp_path / "after")
    with Cluster(directory=copy) as cluster:
        assert watermarks(cluster.bootstrap, "t") == (2, 3)


def test_logs_of_unknown_topics_are_set_aside_and_kept(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path / "data") as cluster:
        create(cluster.bootstrap, "t")
        send_all(cluster.bootstrap, "t", [b"old"])
        copy = crashed_copy(cluster, tmp_path / "copy")
        client = admin(cluster.bootstrap)
        client.delete_topics(["t"])["t"].result(10)
    # The deletion was committed, the folder not yet renamed: what a crash between the two leaves.
    shutil.copytree(copy / "t-0", tmp_path / "data" / "t-0")
    with Cluster(directory=tmp_path / "data") as cluster:
        assert "t" not in admin(cluster.bootstrap).list_topics(timeout=10).topics
        (stray,) = (tmp_path / "data").glob("t-0.*-stray")
        assert (stray / f"{0:020d}.log").stat().st_size > 0
        create(cluster.bootstrap, "t")
        send_all(cluster.bootstrap, "t", [b"new"])
        assert [message.value() for message in read(cluster.bootstrap, "t", 1)] == [b"new"]


def test_a_damaged_partition_answers_storage_error_and_the_rest_serves(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path) as cluster:
        create(cluster.bootstrap, "t", 2)
        send_all(cluster.bootstrap, "t", [b"x" * 1000] * 3, partition=1)
    log = tmp_path / "t-1" / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    data[500] ^= 1
    log.write_bytes(data)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    with Cluster(directory=tmp_path) as cluster:
        outcome = send(cluster.bootstrap, "t", [b"x"], partition=1)
        assert outcome[0] is not None
        assert outcome[0].code() in (KafkaError.KAFKA_STORAGE_ERROR, KafkaError._MSG_TIMED_OUT)
        assert cluster.call(lambda: list(cluster.broker.partitions.offline)) == [("t", 1)]
        send_all(cluster.bootstrap, "t", [b"x"], partition=0)
        assert len(log.read_bytes()) == len(data)
    # And again: neither a clean stop nor a second start may take the rest for what was left.
    with Cluster(directory=tmp_path) as cluster:
        assert cluster.call(lambda: list(cluster.broker.partitions.offline)) == [("t", 1)]
    assert log.read_bytes() == bytes(data)


def test_one_damaged_partition_does_not_end_the_maintenance_of_all(tmp_path: Path) -> None:
    properties = {"log.retention.check.interval.ms": "100", "log.retention.ms": "1000", "log.roll.ms": "500"}
    with Cluster(properties, directory=tmp_path) as cluster:
        for topic in ("bad", "good"):
            create(cluster.bootstrap, topic)
        log = cluster.broker.partitions.get("bad", 0).log

        def damaged() -> int:
            raise CorruptLog("offset 3 at position 0, where 7 is the least")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("headrace.log.retention.enforce", _failing_for(log, damaged))
            old = int(time.time() * 1000) - 60_000
            for shift in (0, 1000, 2000):
                send_all(cluster.bootstrap, "good", [b"x"], timestamp=old + shift)
            eventually(lambda: watermarks(cluster.bootstrap, "good")[0] > 0)


def _failing_for(log: object, damaged: Callable[[], int]) -> Callable[..., int]:
    real = retention.enforce

    def enforce(asked: PartitionLog, now_ms: int, high_watermark: int) -> int:
        return damaged() if asked is log else real(asked, now_ms, high_watermark)

    return enforce


def test_a_large_topic_is_deleted_without_holding_up_the_loop(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path) as cluster:
        create(cluster.bootstrap, "large", 300)
        client = admin(cluster.bootstrap)
        watch = Stopwatch()
        client.delete_topics(["large"])["large"].result(60)
        assert watch.seconds < 30
        # It is gone for clients. Its folders have their turns.
        eventually(lambda: not list(tmp_path.glob("large-[0-9]*[0-9]")))
        assert len(list(tmp_path.glob("large-*-delete"))) == 300


def test_old_data_is_not_waited_with(tmp_path: Path) -> None:
    """A read ends with its segment: fetch.min.bytes must not make a consumer wait where more follows."""
    with Cluster({"log.segment.bytes": str(1024 * 1024)}, directory=tmp_path) as cluster:
        create(cluster.bootstrap, "t")
        send_all(cluster.bootstrap, "t", [b"x" * 400_000] * 6)
        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "none",
                "enable.auto.commit": False,
                "fetch.min.bytes": 90_000_000,
                "fetch.wait.max.ms": 40_000,
            }
        )
        consumer.assign([TopicPartition("t", 0, 0)])
        watch = Stopwatch()
        assert consumer.poll(60) is not None
        assert watch.seconds < 30
        consumer.close()
