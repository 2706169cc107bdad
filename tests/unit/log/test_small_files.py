"""The bytes of indexes, checkpoints and other small files, and how broken ones are refused."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import UUID

import pytest

from headrace.core.ids import TopicPartition
from headrace.log import checkpoints, files
from headrace.log.checkpoints import CorruptCheckpoint
from headrace.log.index_file import CHUNK_ENTRIES, WrongIndex
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.offset_index import OffsetIndex
from headrace.log.os_disk import OsDisk
from headrace.log.time_index import NO_TIMESTAMP, TimeIndex
from tests.unit.log.material import NOW, append, open_at, topic_config

DISK = OsDisk()


def test_the_entries_of_the_indexes(tmp_path: Path) -> None:
    """One entry for the first batch that begins more than the interval behind the last entry's."""
    log = open_at(DISK, str(tmp_path), config=topic_config(index_interval_bytes=200))
    for number, late in enumerate((0, 9, 3, 4, 20, 7, 8)):
        append(log, b"x" * 33, timestamp=NOW + late)
        assert log.size_bytes == (number + 1) * 101
    log.close()
    base = Path(log.path) / f"{0:020d}"
    index = base.with_suffix(".index").read_bytes()
    assert index.hex() == "00000002000000ca0000000400000194000000060000025e"
    times = base.with_suffix(".timeindex").read_bytes()
    assert times == b"".join(
        (NOW + late).to_bytes(8, "big") + offset.to_bytes(4, "big") for late, offset in ((9, 1), (20, 4))
    )


def test_an_index_is_searched_in_its_file_and_its_tail(tmp_path: Path) -> None:
    index = OffsetIndex(DISK, str(tmp_path / "i"), 1000)
    count = CHUNK_ENTRIES * 5 + 10
    for number in range(count):
        index.append(1000 + number * 10 + 9, number * 100)
    assert index.count == count
    assert (tmp_path / "i").stat().st_size == CHUNK_ENTRIES * 5 * 8
    assert index.lookup(1008) == (0, None)
    for number in (0, 1, 700, CHUNK_ENTRIES * 5 - 1, CHUNK_ENTRIES * 5, count - 1):
        assert index.lookup(1000 + number * 10 + 9) == (number * 100, 1000 + number * 10 + 9)
        assert index.lookup(1000 + number * 10 + 15) == (number * 100, 1000 + number * 10 + 9)
    index.truncate_to(1000 + 20)
    assert (index.count, index.last()) == (2, (1019, 100))
    index.truncate_to(0)
    assert (index.count, index.last()) == (0, (1000, 0))


def test_an_index_that_was_cut_is_wrong(tmp_path: Path) -> None:
    """Also where a block of it is still in memory: whoever then asks the file gets less than an entry."""
    index = OffsetIndex(DISK, str(tmp_path / "i"), 1000)
    for number in range(1, 4):
        index.append(1000 + number, 100 * number)
    index.flush()
    os.truncate(tmp_path / "i", 12)
    with pytest.raises(WrongIndex, match="was cut"):
        index.entry(1)


def test_a_time_index_only_ascends(tmp_path: Path) -> None:
    index = TimeIndex(DISK, str(tmp_path / "t"), 50)
    index.last_timestamp = NO_TIMESTAMP
    for when, offset in ((10, 51), (10, 52), (9, 53), (30, 60), (40, 70)):
        index.maybe_append(when, offset)
    assert index.count == 3
    assert index.lookup(9) is None
    assert index.lookup(10) == (10, 51, 50)
    assert index.lookup(39) == (30, 60, 51)
    index.truncate_to(60)
    assert (index.count, index.last(), index.last_timestamp) == (1, (10, 51), 10)


def test_offset_checkpoints() -> None:
    offsets = {TopicPartition("b", 1): 7, TopicPartition("a", 10): 5, TopicPartition("a", 2): 0}
    content = checkpoints.format_offsets(offsets)
    assert content == b"0\n3\na 2 0\na 10 5\nb 1 7\n"
    assert checkpoints.parse_offsets(content) == offsets
    assert checkpoints.format_offsets({}) == b"0\n0\n"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0\n",
        b"1\n0\n",
        b"0\n1\n",
        b"0\n0\na 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na x 1\n",
        b"0\n1\na 0 1",
        b"\0" * 20,
        b"0\n1\n\xff 0 1\n",
    ],
)
def test_broken_checkpoints_are_refused_and_count_as_empty(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        checkpoints.parse_offsets(content)
    (tmp_path / "c").write_bytes(content)
    assert checkpoints.load_offsets(DISK, str(tmp_path / "c")) == {}


def test_partition_metadata() -> None:
    topic_id = UUID("12345678-1234-5678-1234-567812345678")
    content = checkpoints.format_partition_metadata(topic_id)
    assert content == b"version: 0\ntopic_id: EjRWeBI0VngSNFZ4EjRWeA\n"
    assert checkpoints.parse_partition_metadata(content) == topic_id
    for broken in (
        b"",
        b"version: 1\ntopic_id: EjRWeBI0VngSNFZ4EjRWeA",
        b"version: 0\ntopic_id: EjRW\n",
        b"version: 0\n",
    ):
        with pytest.raises(CorruptCheckpoint):
            checkpoints.parse_partition_metadata(broken)


def test_clean_shutdown_files() -> None:
    assert checkpoints.parse_clean_shutdown(checkpoints.format_clean_shutdown(9)) == checkpoints.CleanStop(9)
    damaged = frozenset({TopicPartition("orders", 3), TopicPartition("orders", 1)})
    said = checkpoints.format_clean_shutdown(9, damaged)
    assert checkpoints.parse_clean_shutdown(said) == checkpoints.CleanStop(9, damaged)
    for unknown in (b"", b"{}", b"[]", b"\xff"):
        assert checkpoints.parse_clean_shutdown(unknown) == checkpoints.CleanStop()


def test_properties_are_read_as_java_writes_them() -> None:
    text = b"#\n#Sat Nov 15 2025\ncluster.id=abc\nversion = 1\n\nnode.id=1\n"
    assert checkpoints.parse_properties(text) == {"cluster.id": "abc", "version": "1", "node.id": "1"}


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("orders-0", TopicPartition("orders", 0)),
        ("my-topic.v1_x-12", TopicPartition("my-topic.v1_x", 12)),
        ("orders-0.0123456789abcdef0123456789abcdef-delete", None),
        ("orders", None),
        ("-3", None),
        ("orders-", None),
        ("a b-1", None),
    ],
)
def test_directory_names(name: str, partition: TopicPartition | None) -> None:
    assert files.parse_directory(name) == partition


def test_the_name_of_a_deleted_directory_always_fits() -> None:
    name = files.set_aside_name(TopicPartition("t" * 249, 1234567), UUID(int=3), files.DELETED_DIRECTORY)
    assert len(name) == 255
    assert files.parse_directory(name) is None
    short = files.set_aside_name(TopicPartition("t", 1), UUID(int=3), files.DELETED_DIRECTORY)
    assert short == f"t-1.{3:032x}-delete"


def test_leader_epochs_answer_where_an_epoch_ended(tmp_path: Path) -> None:
    epochs = LeaderEpochs(DISK, str(tmp_path / "e"))
    assert epochs.end_offset_for(0, 0) == (-1, -1)
    for epoch, start in ((2, 0), (4, 10), (7, 30)):
        epochs.assign(epoch, start)
    assert epochs.end_offset_for(7, 50) == (7, 50)
    assert epochs.end_offset_for(8, 50) == (-1, -1)
    assert epochs.end_offset_for(-1, 50) == (-1, -1)
    assert epochs.end_offset_for(4, 50) == (4, 30)
    assert epochs.end_offset_for(5, 50) == (4, 30)
    assert epochs.end_offset_for(2, 50) == (2, 10)
    assert epochs.end_offset_for(1, 50) == (1, 0)
    assert [epochs.epoch_of(offset) for offset in (0, 9, 10, 29, 30, 99)] == [2, 2, 4, 4, 7, 7]


def test_leader_epochs_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "e"
    epochs = LeaderEpochs(DISK, str(path))
    epochs.assign(2, 0)
    epochs.assign(4, 10)
    epochs.assign(3, 20)
    assert path.read_bytes() == b"0\n2\n2 0\n4 10\n"
    again = LeaderEpochs(DISK, str(path))
    assert again.load()
    assert again.entries == [(2, 0), (4, 10)]
    for broken in (b"0\n1\n2 0\n4 10\n", b"0\n2\n4 0\n2 10\n", b"0\n2\n2 10\n4 10\n", b"0\n1\nx 0\n", b""):
        path.write_bytes(broken)
        assert not LeaderEpochs(DISK, str(path)).load()


def test_an_epoch_that_wrote_nothing_is_replaced(tmp_path: Path) -> None:
    epochs = LeaderEpochs(DISK, str(tmp_path / "e"))
    epochs.assign(1, 0)
    epochs.assign(2, 10)
    epochs.assign(5, 10)
    assert epochs.entries == [(1, 0), (5, 10)]
    epochs.truncate_from_end(10)
    assert epochs.entries == [(1, 0)]


def test_the_epoch_at_the_log_start_begins_there(tmp_path: Path) -> None:
    epochs = LeaderEpochs(DISK, str(tmp_path / "e"))
    for epoch, start in ((1, 0), (2, 10), (3, 20)):
        epochs.assign(epoch, start)
    epochs.truncate_from_start(15)
    assert epochs.entries == [(2, 15), (3, 20)]
    epochs.truncate_from_start(20)
    assert epochs.entries == [(3, 20)]
    epochs.truncate_from_start(5)
    assert epochs.entries == [(3, 20)]
