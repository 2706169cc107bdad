"""What a task writes: every committed record once, in columns as Spark's connector has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.arrow.columns import Bounds
from headrace.protocol.records import NewRecord, Record
from headrace.spark.lake.backfill import files
from headrace.spark.lake.backfill.rows import COLUMNS, schema
from headrace.spark.lake.backfill.task import Outcome, Work, carried_out, of_json, to_json
from headrace.spark.lake.tables.landing import Landing
from headrace.spark.segments.job import list_spans
from headrace.spark.segments.place import Directories
from headrace.spark.segments.plan import Task, tasks
from tests.unit.arrow.written_logs import PARTITION, WrittenLog

TOPIC = PARTITION.topic
FIELD_IDS = {name: number for number, name in enumerate(COLUMNS, 1)} | {
    "headers.list.element": 8,
    "headers.list.element.key": 9,
    "headers.list.element.value": 10,
}


def records(first: int, count: int, size: int = 10) -> list[NewRecord]:
    return [
        NewRecord(
            timestamp=1_700_000_000_000 + number,
            key=None if number % 3 == 0 else b"k%d" % number,
            value=None if number % 5 == 0 else b"v" * size,
            headers=(("a", b"1"), ("b", None)) if number % 2 else (),
        )
        for number in range(first, first + count)
    ]


@pytest.fixture
def log() -> WrittenLog:
    """Segments with every codec, and transactions of both ends across them."""
    log = WrittenLog()
    for codec in range(5):
        log.append(records(codec * 40, 20), codec=codec)
        log.append(records(codec * 40 + 20, 10), codec=codec, producer_id=7, transactional=True)
        log.roll()
        log.append(records(codec * 40 + 30, 10))
        log.end_transaction(7, commit=codec % 2 == 0)
    log.roll()
    return log


def planned(place: Directories, task_bytes: int) -> list[Task]:
    with place.opened() as opened:
        return tasks(list_spans(opened, TOPIC, None, lambda _: Bounds()), task_bytes)


def work(place: Directories, target: Path, file_bytes: int = 1 << 30, field_ids: Any = None) -> Work:
    landing = Landing(f"file://{target}", "some", "snappy", field_ids or {})
    return Work(place, landing, COLUMNS, committed_only=True, file_bytes=file_bytes)


def row(record: Record) -> dict[str, Any]:
    pairs = [{"key": key, "value": value} for key, value in record.headers]
    return {
        "topic": TOPIC,
        "partition": PARTITION.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": record.key,
        "headers": pairs or None,
        "value": record.value,
    }


def rows_of(target: Path, outcomes: list[Outcome]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for outcome in outcomes:
        assert outcome.error is None
        for file in outcome.files:
            read = pq.read_table(target / file.name).to_pylist()
            assert len(read) == file.rows
            found += read
    for each in found:
        each["timestamp"] = round(each["timestamp"].timestamp() * 1000)
    return found


@pytest.mark.parametrize("task_bytes", [700, 1 << 30])
def test_tasks_together_write_what_a_consumer_gets(log: WrittenLog, tmp_path: Path, task_bytes: int) -> None:
    place = Directories((str(log.save(tmp_path / "logs")),))
    target = tmp_path / "table"
    outcomes = [carried_out(work(place, target), task) for task in planned(place, task_bytes)]
    assert rows_of(target, outcomes) == [row(record) for record in log.visible]
    told = {file.name for outcome in outcomes for file in outcome.files}
    assert {path.name for path in target.iterdir()} == told
    assert [of_json(to_json(each)) for each in outcomes] == outcomes


def test_a_file_is_described(log: WrittenLog, tmp_path: Path) -> None:
    place = Directories((str(log.save(tmp_path / "logs")),))
    target = tmp_path / "table"
    (task,) = planned(place, 1 << 30)
    whole = carried_out(work(place, target / "one"), task)
    (file,) = whole.files
    visible = log.visible
    assert (file.topic, file.first_partition, file.last_partition) == (TOPIC, 3, 3)
    assert (file.first_offset, file.last_offset) == (visible[0].offset, visible[-1].offset)
    times = [record.timestamp for record in visible]
    assert (file.first_ms, file.last_ms) == (min(times), max(times))
    assert file.nulls["key"] == sum(record.key is None for record in visible)
    assert file.nulls["headers"] == sum(not record.headers for record in visible)
    assert file.nulls["offset"] == 0


def test_files_are_ended_at_their_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "GROUP_BYTES", 1)
    made = schema(("topic", "partition", "offset", "timestamp"), {})
    landing = files.LandingFiles(Landing(f"file://{tmp_path}", "some", "none"), made, 1500)
    for first in range(0, 90, 10):
        offsets = list(range(first, first + 10))
        columns = [["t"] * 10, [first // 50] * 10, offsets, [offset * 1000 for offset in offsets]]
        landing.add(pa.RecordBatch.from_arrays(list(map(pa.array, columns, made.types)), schema=made))
    landing.close()
    assert len(landing.landed) > 1
    read = [pq.read_table(tmp_path / file.name).column("offset").to_pylist() for file in landing.landed]
    assert [offset for each in read for offset in each] == list(range(90))
    spans = [(file.first_offset, file.last_offset, file.first_ms, file.last_ms) for file in landing.landed]
    assert spans == [(each[0], each[-1], each[0], each[-1]) for each in read]
    assert (landing.landed[0].first_partition, landing.landed[-1].last_partition) == (0, 1)
    landing.give_up()
    assert list(tmp_path.iterdir()) == []


def test_columns_have_the_numbers_that_the_table_knows_them_by(log: WrittenLog, tmp_path: Path) -> None:
    place = Directories((str(log.save(tmp_path / "logs")),))
    outcome = carried_out(work(place, tmp_path, field_ids=FIELD_IDS), planned(place, 1 << 30)[0])
    written = pq.ParquetFile(tmp_path / outcome.files[0].name).schema_arrow
    number = b"PARQUET:field_id"
    assert [int(field.metadata[number]) for field in written] == list(range(1, 8))
    element = written.field("headers").type.value_field
    assert int(element.metadata[number]) == 8
    assert [int(element.type.field(at).metadata[number]) for at in range(2)] == [9, 10]


def test_a_damaged_segment_is_told_and_leaves_no_file(log: WrittenLog, tmp_path: Path) -> None:
    directory = log.save(tmp_path / "logs")
    place = Directories((str(directory),))
    (task,) = planned(place, 1 << 30)
    last = sorted((directory / str(PARTITION)).glob("*.log"))[-2]
    content = bytearray(last.read_bytes())
    content[70] ^= 1
    last.write_bytes(content)
    target = tmp_path / "table"
    outcome = carried_out(work(place, target), task)
    assert outcome.error is not None
    assert "is damaged at offset" in outcome.error
    assert "headrace log verify" in outcome.error
    assert outcome.files == ()
    assert not target.exists() or list(target.iterdir()) == []


def test_a_directory_that_cannot_be_written_is_told(log: WrittenLog, tmp_path: Path) -> None:
    place = Directories((str(log.save(tmp_path / "logs")),))
    (tmp_path / "table").write_text("a file")
    outcome = carried_out(work(place, tmp_path / "table"), planned(place, 1 << 30)[0])
    assert outcome.error is not None
    assert "table" in outcome.error
