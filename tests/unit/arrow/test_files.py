"""A topic out of the files of a log, beside a list of what is in it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.arrow import DamagedHistory, HistoryGone, open_topic, read_topic
from headrace.arrow.files import FileHistory, find_histories
from headrace.client.errors import ClientFailure
from headrace.core.ids import TopicPartition
from headrace.log import files
from headrace.log.os_disk import ReadOnlyOsDisk
from headrace.protocol.records import NewRecord
from tests.unit.arrow.drawn_logs import logs
from tests.unit.arrow.rows import records_of
from tests.unit.arrow.written_logs import PARTITION, WrittenLog

TOPIC = PARTITION.topic


def plain(count: int, segments: int = 1) -> WrittenLog:
    """Batches of two records, with times as offsets."""
    log = WrittenLog()
    for number in range(segments):
        if number:
            log.roll()
        for _ in range(count):
            log.append([NewRecord(b"v%d" % at, b"k", at) for at in (log.end, log.end + 1)])
    return log


@given(logs(), st.booleans())
def test_it_has_what_a_consumer_would_get(log: WrittenLog, committed_only: bool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        log.save(Path(directory))
        isolation = "read_committed" if committed_only else "read_uncommitted"
        found = records_of(read_topic(TOPIC, files=directory, isolation=isolation, batch_rows=3))
    assert found == (log.visible if committed_only else log.all_records)


@given(logs(), st.data())
def test_bounds_leave_out_what_is_outside(log: WrittenLog, data: st.DataObject) -> None:
    offsets = st.one_of(st.none(), st.integers(log.start - 1, log.end + 1))
    times = st.one_of(st.none(), st.integers(0, 1001))
    start, end, first, last = (data.draw(each) for each in (offsets, offsets, times, times))
    for offset in data.draw(st.sets(st.sampled_from(sorted(log.snapshots)))) if log.snapshots else ():
        log.snapshots[offset] = b"broken"
    with tempfile.TemporaryDirectory() as directory:
        log.save(Path(directory))
        found = records_of(
            read_topic(TOPIC, files=directory, start=start, end=end, start_time=first, end_time=last)
        )
    assert found == [
        record
        for record in log.visible
        if (start is None or record.offset >= start)
        and (end is None or record.offset < end)
        and (first is None or record.timestamp >= first)
        and (last is None or record.timestamp < last)
    ]


@given(logs(), st.data())
def test_only_what_is_committed(log: WrittenLog, data: st.DataObject) -> None:
    """Below the high watermark; a transaction that ends above it is not decided."""
    watermark = data.draw(st.integers(log.start, log.end))
    with tempfile.TemporaryDirectory() as directory:
        log.save(Path(directory), watermark=watermark)
        found = records_of(read_topic(TOPIC, files=directory))
    assert found == log.visible[: len(found)]
    assert all(record.offset < watermark for record in found)


@given(logs(), st.data())
def test_a_flipped_bit_never_gives_other_records(log: WrittenLog, data: st.DataObject) -> None:
    """Behind the offsets and epochs, which no checksum covers: a sentence, and what came before it."""
    for segment in log.segments:
        if segment.data:
            at = data.draw(st.integers(16, len(segment.data) - 1))
            break
    else:
        return
    segment.data[at] ^= 1 << data.draw(st.integers(0, 7))
    whole = log.visible
    found: list[object] = []
    with tempfile.TemporaryDirectory() as directory:
        log.save(Path(directory))
        try:
            found += records_of(read_topic(TOPIC, files=directory, batch_rows=1))
        except DamagedHistory:
            assert found == []  # of what came before, the next test speaks
    assert all(record in whole for record in found)


@pytest.mark.parametrize("at", [16, 17, 40, 61, 70])
def test_damage_is_said_in_a_sentence(tmp_path: Path, at: int) -> None:
    log = plain(5, segments=2)
    size = len(log.segments[0].data) // 5
    log.segments[0].data[2 * size + at] ^= 0x10
    log.save(tmp_path)
    reader = read_topic(TOPIC, files=tmp_path, batch_rows=1)
    given = [reader.read_next_batch().column("offset").to_pylist() for _ in range(2)]
    assert given == [[0, 1], [2, 3]]
    with pytest.raises(DamagedHistory, match=r"00000000000000000000\.log is damaged at offset 4: "):
        reader.read_next_batch()


def test_a_segment_that_was_cut(tmp_path: Path) -> None:
    log = plain(5, segments=2)
    del log.segments[0].data[-7:]
    log.save(tmp_path)
    with pytest.raises(DamagedHistory, match="is damaged at offset 8: batch length"):
        read_topic(TOPIC, files=tmp_path).read_all()


def test_a_log_that_is_shorter_than_what_was_committed(tmp_path: Path) -> None:
    plain(5).save(tmp_path, watermark=20)
    with pytest.raises(DamagedHistory, match="everything below 20 was committed"):
        read_topic(TOPIC, files=tmp_path).read_all()


def test_without_a_checkpoint_sealed_segments_are_read(tmp_path: Path) -> None:
    log = plain(5, segments=2)
    log.save(tmp_path)
    (tmp_path / "replication-offset-checkpoint").unlink()
    assert [each.offset for each in records_of(read_topic(TOPIC, files=tmp_path))] == list(range(10))


def test_a_folder_by_itself_and_several_replicas(tmp_path: Path) -> None:
    log = plain(5)
    log.save(tmp_path / "behind", watermark=4)
    log.save(tmp_path / "ahead", watermark=8)
    folder = tmp_path / "behind" / str(PARTITION)
    assert len(records_of(read_topic(TOPIC, files=str(folder)))) == 4
    assert len(records_of(read_topic(TOPIC, files=[folder, tmp_path / "ahead"]))) == 8
    assert find_histories([tmp_path / "ahead"], TOPIC, [0]) == []


def test_records_before_the_log_start_are_deleted(tmp_path: Path) -> None:
    plain(5, segments=2).save(tmp_path, log_start=13)
    assert [each.offset for each in records_of(read_topic(TOPIC, files=tmp_path))] == list(range(13, 20))


def test_what_retention_deletes_meanwhile_is_said(tmp_path: Path) -> None:
    plain(5, segments=4).save(tmp_path)
    reader = read_topic(TOPIC, files=tmp_path, batch_rows=1)
    reader.read_next_batch()
    for base in (10, 20):
        (tmp_path / str(PARTITION) / f"{files.numbered(base)}.log").unlink()
    folder = tmp_path / str(PARTITION)
    (folder / f"{files.numbered(0)}.log").unlink()
    with pytest.raises(HistoryGone, match="from offset 10 were deleted while they were read") as caught:
        reader.read_all()
    assert "begins at offset 30" in caught.value.hint


def test_segments_that_compaction_merges_meanwhile(tmp_path: Path) -> None:
    """The file at hand is read to its end; then it goes on within the merged one."""
    log = plain(5, segments=3)
    log.save(tmp_path)
    reader = read_topic(TOPIC, files=tmp_path, batch_rows=1)
    found = reader.read_next_batch().column("offset").to_pylist()
    merged = log.segments[0].data + log.segments[1].data
    folder = tmp_path / str(PARTITION)
    (folder / "merged").write_bytes(merged)
    (folder / "merged").rename(folder / f"{files.numbered(0)}.log")
    (folder / f"{files.numbered(10)}.log").unlink()
    found += [offset for batch in reader for offset in batch.column("offset").to_pylist()]
    assert found == list(range(30))


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("step", range(5))
def test_each_step_of_the_swap_of_a_compacted_segment(tmp_path: Path, place: int, step: int) -> None:
    """`log/cleaner/swap.py`: the merged segment stands beside the two, in the place of each, and of both."""
    log = plain(5, segments=4)
    log.save(tmp_path)
    folder = tmp_path / str(PARTITION)
    first, second = (folder / f"{files.numbered(base)}.log" for base in (place * 10, place * 10 + 10))
    swap = first.with_suffix(".log.swap")
    begun = read_topic(TOPIC, files=tmp_path, batch_rows=1)
    first_row = begun.read_next_batch().num_rows
    swap.with_suffix(".cleaned").write_bytes(log.segments[place].data + log.segments[place + 1].data)
    renames = (
        (swap.with_suffix(".cleaned"), swap),
        (first, first.with_suffix(".log.deleted")),
        (second, second.with_suffix(".log.deleted")),
        (swap, first),
    )
    for source, target in renames[:step]:
        source.rename(target)
    assert records_of(read_topic(TOPIC, files=tmp_path)) == log.visible
    for start in (9, 15, 20, 29):
        assert records_of(read_topic(TOPIC, files=tmp_path, start=start)) == log.visible[start:]
    assert records_of(begun) == log.visible[first_row:]


def test_a_list_that_leaves_out_a_name_which_changes(tmp_path: Path) -> None:
    class Disk(ReadOnlyOsDisk):
        left_out = ""

        def list(self, path: str) -> list[str]:
            left_out, self.left_out = self.left_out, ""
            return [each for each in super().list(path) if each != left_out]

    log = plain(5, segments=3)
    disk = Disk()
    history = FileHistory(disk, f"{log.save(tmp_path)}/{PARTITION}", PARTITION)
    for base in (0, 10, 20):
        disk.left_out = f"{files.numbered(base)}.log"
        segment = history.open_at(base + 5)
        segment.close()
        assert segment.base_offset == base


@example(entry=(0, 3))
@given(entry=st.tuples(st.integers(-5, 40), st.integers(-5, 4000)))
def test_an_index_that_lies_is_not_believed(entry: tuple[int, int]) -> None:
    log = plain(10)
    relative, position = entry
    log.segments[0].index = bytearray(
        relative.to_bytes(4, "big", signed=True) + position.to_bytes(4, "big", signed=True)
    )
    with tempfile.TemporaryDirectory() as directory:
        log.save(Path(directory))
        found = records_of(read_topic(TOPIC, files=directory, start=11))
    assert [each.offset for each in found] == list(range(11, 20))


def test_segments_that_are_too_old_are_not_read(tmp_path: Path) -> None:
    log = plain(5, segments=3)
    log.segments[0].data[30] ^= 1  # whoever reads it says so
    log.save(tmp_path)
    found = records_of(read_topic(TOPIC, files=tmp_path, start_time=12))
    assert [each.offset for each in found] == list(range(12, 30))
    with pytest.raises(DamagedHistory):
        read_topic(TOPIC, files=tmp_path, start_time=9).read_all()


def test_a_time_index_without_sense_is_not_believed(tmp_path: Path) -> None:
    log = plain(5, segments=2)
    log.save(tmp_path)
    path = tmp_path / str(PARTITION) / f"{files.numbered(0)}.timeindex"
    for content in (b"", b"short", (3).to_bytes(8, "big") + (99).to_bytes(4, "big")):
        path.write_bytes(content)
        assert len(records_of(read_topic(TOPIC, files=tmp_path, start_time=5))) == 15


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda at: read_topic("other", files=at).read_all(), "there is no partition of topic other in "),
        (lambda at: read_topic(TOPIC, files=at / "none").read_all(), "none is no directory"),
        (lambda at: read_topic(TOPIC, files=at, columns=["valeu"]), "there is no column valeu"),
        (lambda at: read_topic(TOPIC, files=at, tier="s3://b"), "from files or from a tier"),
        (lambda at: read_topic(TOPIC, files=at, isolation="none"), "'none' is no isolation"),
        (lambda at: read_topic(TOPIC, files=at, start_time="soon"), "'soon' is not a time"),
    ],
)
def test_mistakes_are_said(tmp_path: Path, call: Callable[[Path], object], sentence: str) -> None:
    plain(1).save(tmp_path)
    with pytest.raises(ClientFailure, match=sentence):
        call(tmp_path)


def test_columns_are_those_that_were_asked_for(tmp_path: Path) -> None:
    plain(2).save(tmp_path)
    topic = open_topic(TOPIC, files=tmp_path, columns=["offset", "value"])
    assert topic.reader().read_all().to_pydict() == {
        "offset": [0, 1, 2, 3],
        "value": [b"v0", b"v1", b"v2", b"v3"],
    }
    assert topic.select(["partition", "timestampType"]).reader().read_all().to_pydict() == {
        "partition": [3] * 4,
        "timestampType": [0] * 4,
    }
    assert topic.select([]).reader().read_all().num_rows == 4
    assert topic.between(start=1, end={3: 3}).reader().read_all().column("offset").to_pylist() == [1, 2]
    assert topic.reader().schema == topic.schema


def test_names_of_headers_that_are_no_text(tmp_path: Path) -> None:
    log = WrittenLog()
    log.append([NewRecord(b"v", None, 1, (("a\udcff", b"1"), ("b", None)))])
    log.save(tmp_path)
    (row,) = read_topic(TOPIC, files=tmp_path, columns=["headers"]).read_all().to_pylist()
    assert row["headers"] == [{"key": "a\ufffd", "value": b"1"}, {"key": "b", "value": None}]


def test_a_folder_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    history = FileHistory(ReadOnlyOsDisk(), str(tmp_path / "orders-0"), TopicPartition("orders", 0))
    assert (history.start, history.end) == (0, 0)
    assert read_topic("orders", files=tmp_path).read_all().num_rows == 0


def test_files_that_may_not_be_read_are_said(tmp_path: Path) -> None:
    plain(1).save(tmp_path)
    segment = tmp_path / str(PARTITION) / f"{files.numbered(0)}.log"
    segment.unlink()
    segment.symlink_to(segment)  # root may read all else
    with pytest.raises(ClientFailure, match=r"\.log cannot be read: "):
        read_topic(TOPIC, files=tmp_path).read_all()


@pytest.mark.parametrize("has_snapshots", [True, False])
def test_a_start_behind_an_open_transaction(tmp_path: Path, has_snapshots: bool) -> None:
    log = plain(2)
    log.append([NewRecord(b"open", None, 5)], producer_id=7, transactional=True)
    log.roll()
    log.append([NewRecord(b"behind", None, 900)] * 3)
    log.roll()
    log.append([NewRecord(b"behind", None, 900)] * 3)
    if not has_snapshots:
        log.snapshots.clear()
    log.save(tmp_path)
    assert read_topic(TOPIC, files=tmp_path, start=6).read_all().num_rows == 0
    assert read_topic(TOPIC, files=tmp_path, start_time=900).read_all().num_rows == 0
    log.end_transaction(7, commit=True)
    log.save(tmp_path)
    assert read_topic(TOPIC, files=tmp_path, start=6).read_all().num_rows == 5
    log.segments[1].data[8:12] = b"\x7f\xff\xff\xff"  # nobody can walk over it
    log.save(tmp_path)
    if not has_snapshots:
        with pytest.raises(DamagedHistory, match=r"5\.log is damaged at offset 5: batch length"):
            read_topic(TOPIC, files=tmp_path, start=9).read_all()
    assert read_topic(TOPIC, files=tmp_path, end=4).read_all().num_rows == 4
    with pytest.raises(DamagedHistory, match=r"5\.log is damaged at offset 5: batch length"):
        read_topic(TOPIC, files=tmp_path, end=5).read_all()  # its marker is behind the damage
