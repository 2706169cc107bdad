"""Something that is no file lies where a partition has one: a matter of this partition, not of the disk."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import UUID

import pytest

from headrace.core.ids import TopicPartition
from tests.unit.log.material import NOW, append, open_manager, topic_config

CONFIG = topic_config(segment_bytes=400, index_interval_bytes=100)
ODD, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
RECORDS = 30


@pytest.mark.parametrize("stop", ["clean", "kill"])
@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a link to nowhere"])
@pytest.mark.parametrize(
    "name", ["*.log", "*.index", "*.timeindex", "*.snapshot", "headrace.manifest", "leader-epoch-checkpoint"]
)
def test_the_other_partitions_are_served(tmp_path: Path, stop: str, kind: str, name: str) -> None:
    manager = open_manager(tmp_path, CONFIG)
    for partition in (ODD, OTHER):
        log = manager.create(partition, UUID(int=5), NOW)
        for number in range(RECORDS):
            append(log, b"%d" % number, timestamp=NOW + number)
        log.flush()
    if stop == "clean":
        manager.shut_down(1, {ODD: RECORDS, OTHER: RECORDS})
    else:
        manager.release()
    for path in sorted((tmp_path / str(ODD)).glob(name))[-1:]:
        path.unlink()
        if kind == "a folder":
            path.mkdir()
        elif kind == "a pipe":
            os.mkfifo(path)
        else:
            path.symlink_to(tmp_path / "nowhere")
    manager = open_manager(tmp_path, CONFIG)
    assert [directory.failure for directory in manager.directories] == [None]
    assert manager.logs[OTHER].end_offset == RECORDS
    if ODD in manager.quarantined:
        assert str(tmp_path / str(ODD)) in str(manager.quarantined[ODD])
    else:
        assert manager.logs[ODD].end_offset == RECORDS
    manager.release()


def test_a_partition_behind_a_link_is_deleted_like_any_other(tmp_path: Path) -> None:
    """It once took its whole directory offline, at each start anew. What the link leads to stays."""
    logs, elsewhere = tmp_path / "logs", tmp_path / "elsewhere"
    logs.mkdir()
    manager = open_manager(logs, CONFIG)
    for partition in (ODD, OTHER):
        append(manager.create(partition, UUID(int=5), NOW), b"x")
    manager.release()
    (logs / str(ODD)).rename(elsewhere)
    (logs / str(ODD)).symlink_to(elsewhere)
    manager = open_manager(logs, CONFIG)
    manager.delete([ODD], NOW)
    manager.removals.remove(manager.removals.take_due(NOW + 10 * 60_000))
    assert [directory.failure for directory in manager.directories] == [None]
    assert not [each for each in logs.iterdir() if each.name.startswith(str(ODD))]
    assert list(elsewhere.glob("*.log"))
    manager.release()


def test_what_is_called_like_a_deleted_partition_and_is_none_stays(tmp_path: Path) -> None:
    manager = open_manager(tmp_path, CONFIG)
    append(manager.create(OTHER, UUID(int=5), NOW), b"x")
    manager.release()
    odd = tmp_path / f"{ODD}.{'0' * 32}-delete"
    odd.write_text("mine")
    manager = open_manager(tmp_path, CONFIG)
    manager.removals.remove(manager.removals.take_due(NOW + 10 * 60_000))
    assert [directory.failure for directory in manager.directories] == [None]
    assert odd.read_text() == "mine"
    manager.release()
