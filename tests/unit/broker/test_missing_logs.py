"""Logs that a lone broker does not find: made anew where they never were, offline where a disk is missing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from headrace.broker.storage.missing_logs import MissingLogs, find_missing
from headrace.controller.operations import TopicDeletion
from headrace.core.errors import CorruptLog
from headrace.core.ids import BrokerEpoch, TopicPartition
from headrace.log.manager import LogManager
from headrace.log.os_disk import OsDisk
from tests.unit.controller.cluster import Cluster, description
from tests.unit.log.material import NOW, topic_config
from tests.unit.log.test_manager import IDENTITY

RANDOM = Random(1)
NONE = MissingLogs((), {})


class Alone:
    """A lone broker's metadata, and its directories opened as at each start."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths
        self.metadata = Cluster(())
        self._epoch = 0

    @contextmanager
    def started(self, *, make: bool = True) -> Iterator[tuple[LogManager, MissingLogs]]:
        """`make` False: killed before it made the logs that are not there."""
        logs = LogManager(
            OsDisk(),
            [str(path) for path in self.paths],
            IDENTITY,
            lambda _: topic_config(),
            new_uuid=lambda: UUID(int=RANDOM.getrandbits(128)),
        )
        logs.open_all(NOW)
        missing = find_missing(self.metadata.image, 1, logs)
        self._epoch += 1
        directories = (*(each.uuid for each in logs.online()), *missing.directories)
        said = description(1)._replace(directories=directories)
        self.metadata.do(self.metadata.machine.register_broker(said, BrokerEpoch(self._epoch), fenced=False))
        try:
            yield logs, missing
            if make:
                self._make(logs, missing)
        finally:
            logs.shut_down(self._epoch)

    def _make(self, logs: LogManager, missing: MissingLogs) -> None:
        for topic in self.metadata.image.topics_by_name.values():
            for index in range(len(topic)):
                name = TopicPartition(topic.name, index)
                known = name in logs.logs or name in logs.quarantined
                if not known and (topic.topic_id, index) not in missing.partitions:
                    logs.create(name, topic.topic_id, NOW)

    def missing(self, topic: str = "orders") -> list[int]:
        """Which partitions of a topic a start does not find."""
        with self.started() as (_, missing):
            found = self.metadata.image.topic(topic)
            assert found is not None
            return [index for topic_id, index in missing.partitions if topic_id == found.topic_id]


@pytest.fixture
def alone(tmp_path: Path) -> Alone:
    """With two disks, and orders-0 on the first of them, orders-1 on the second."""
    made = Alone([tmp_path / "a", tmp_path / "b"])
    with made.started() as (_, missing):
        assert missing == NONE
        made.metadata.create("orders", 2, 1)
    assert (tmp_path / "b" / "orders-1").is_dir()
    return made


def take_away(path: Path) -> Path:
    away = path.with_name("away")
    path.rename(away)
    return away


def bring_back(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.with_name("away").rename(path)


def test_a_log_that_was_never_made_is_not_missed(alone: Alone) -> None:
    with alone.started(make=False):
        alone.metadata.create("late", 2, 1)
    assert alone.missing("late") == []
    assert any((path / "late-0").is_dir() for path in alone.paths)


def test_a_log_that_was_moved_away_begins_anew(alone: Alone) -> None:
    shutil.rmtree(alone.paths[1] / "orders-1")
    assert alone.missing() == []
    assert (alone.paths[1] / "orders-1").is_dir()


def test_a_disk_that_cannot_be_used_leaves_its_partitions_offline(alone: Alone) -> None:
    second = alone.paths[1]
    take_away(second)
    second.write_text("a file where the directory was")
    for _ in range(3):  # it is not forgotten by starts without it
        assert alone.missing() == [1]
    assert not (alone.paths[0] / "orders-1").exists()
    bring_back(second)
    assert alone.missing() == []


def test_an_empty_mount_point_is_not_the_disk(alone: Alone) -> None:
    second = alone.paths[1]
    take_away(second)
    second.mkdir()
    for _ in range(3):  # from the second start on the mount point has an identity of its own
        assert alone.missing() == [1]
    assert not (second / "orders-1").exists()
    bring_back(second)
    assert alone.missing() == []


def test_what_was_written_under_the_mount_point_is_missed_when_the_disk_is_back(alone: Alone) -> None:
    second = alone.paths[1]
    take_away(second)
    second.mkdir()
    with alone.started():
        alone.metadata.create("meanwhile", 1, 1)
    assert (second / "meanwhile-0").is_dir()
    bring_back(second)
    assert alone.missing("meanwhile") == [0]
    assert alone.missing("orders") == []


def test_a_directory_that_log_dirs_drops_is_missed_until_its_logs_are_elsewhere(
    alone: Alone,
) -> None:
    first, second = alone.paths
    alone.paths = [first]
    with alone.started() as (_, missing):
        (error,) = missing.partitions.values()
        assert "log.dirs does not name it" in str(error)
        assert len(missing.directories) == 1
    (second / "orders-1").rename(first / "orders-1")
    with alone.started() as (_, missing):
        assert missing == NONE


def test_the_error_says_what_and_where_and_what_to_do(alone: Alone) -> None:
    second = alone.paths[1]
    take_away(second)
    second.mkdir()
    with alone.started() as (_, missing):
        (error,) = missing.partitions.values()
    assert str(error).startswith("no log directory holds orders-1, and ")
    assert f"{second} is a new one" in str(error)
    assert "mount the disk" in str(error)
    assert "delete the topic" in str(error)


@pytest.mark.parametrize("way", ["delete the topic", "make an empty folder"])
def test_what_a_lost_disk_held_can_be_given_up(alone: Alone, way: str) -> None:
    second = alone.paths[1]
    take_away(second)
    second.mkdir()
    assert alone.missing() == [1]
    if way == "delete the topic":
        with alone.started() as (logs, _):
            alone.metadata.do(alone.metadata.machine.delete_topics([TopicDeletion(name="orders")]))
            logs.delete([TopicPartition("orders", 0)], NOW)
            alone.metadata.create("orders", 2, 1)
    else:
        (second / "orders-1").mkdir()
    with alone.started() as (logs, missing):
        assert missing == NONE
        assert logs.get(TopicPartition("orders", 1)).end_offset == 0


def test_a_directory_that_fails_while_it_is_opened_is_still_known_at_the_next_start(alone: Alone) -> None:
    second = alone.paths[1]
    checkpoint = second / "recovery-point-offset-checkpoint"
    checkpoint.unlink()
    checkpoint.mkdir()  # read and written after the logs were found
    with alone.started(make=False) as (logs, missing):
        assert len(logs.online()) == 1
        assert len(missing.directories) == 1
    take_away(second)
    second.mkdir()
    assert alone.missing() == [1]


def test_a_damaged_log_is_here_all_the_same(alone: Alone) -> None:
    with alone.started() as (logs, _):
        logs.quarantine(TopicPartition("orders", 1), CorruptLog("a bit has flipped"))
        logs.directories[1].fail(OSError(5, "no more"), "try it out")
        missing = find_missing(alone.metadata.image, 1, logs)
    assert missing == NONE


def test_a_log_of_an_older_topic_of_the_name_is_not_this_ones(alone: Alone) -> None:
    first, second = alone.paths
    shutil.copytree(first / "orders-0", first / "orders-1")
    (first / "orders-1" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAACQ\n")
    take_away(second)
    second.mkdir()
    assert alone.missing() == [1]
