"""A backfill into a Parquet table that dies between any two steps, and is run again: each record is there
once. Tasks run here, one after the other; tests/spark/lake/test_backfill.py has Spark.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from headrace.arrow.files import FileHistory
from headrace.protocol.records import NewRecord
from headrace.spark.decoding.formats import Format
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake.backfill import plan
from headrace.spark.lake.backfill.job import Backfill, Backfilled
from headrace.spark.lake.backfill.notes import Notes, Step, Unfinished
from headrace.spark.lake.backfill.refusals import BackfillFailed
from headrace.spark.lake.backfill.rows import COLUMNS
from headrace.spark.lake.backfill.task import Outcome, Work, carried_out
from headrace.spark.lake.broker import BrokersUnreachable
from headrace.spark.lake.config import LakeConfig, TopicRule
from headrace.spark.lake.files import LocalFiles
from headrace.spark.lake.plan import route
from headrace.spark.lake.tables.parquet import ParquetTable
from headrace.spark.segments.place import Directories
from headrace.spark.segments.plan import Task
from tests.unit.arrow.written_logs import PARTITION, WrittenLog

TOPIC = PARTITION.topic
Begins = dict[int, int] | BrokersUnreachable


class Killed(Exception):
    pass


class DyingFiles(LocalFiles):
    """Dies before the n-th thing that it would change."""

    def __init__(self, steps: int = 1_000_000) -> None:
        self.steps = steps

    def _step(self) -> None:
        if self.steps == 0:
            raise Killed
        self.steps -= 1

    def create(self, path: str, text: str) -> bool:
        self._step()
        return super().create(path, text)

    def replace(self, path: str, text: str) -> None:
        self._step()
        super().replace(path, text)

    def move(self, source: str, target: str) -> bool:
        self._step()
        return super().move(source, target)

    def remove(self, path: str) -> None:
        self._step()
        super().remove(path)


class BackfillHere(Backfill):
    """Without Spark."""

    table: ParquetTable
    forgets_commits = False

    def _prepared(self) -> tuple[str, ...]:
        self.files.create(f"{self.table.path}/_headrace/schema.json", '{"type": "struct", "fields": []}')
        return COLUMNS

    def _has_rows(self) -> bool:
        return bool(rows_of(self.table.path))

    def _has_rows_of(self, step: Step) -> bool:
        ranges = step.ranges(TOPIC)
        return any(each.first <= offset < each.end for offset in rows_of(self.table.path) for each in ranges)

    def read(
        self, work: Work, step: Sequence[Task], stopping: threading.Event, told: Callable[[int], None]
    ) -> list[Outcome]:
        found = []
        for task in step:
            found.append(carried_out(work, task))
            told(len(found))
        return found


def rows_of(path: str) -> list[int]:
    """Offsets, of the files that any reader would list."""
    listed = sorted(LocalFiles.path(path).glob("*.parquet"))
    return [offset for file in listed for offset in pq.read_table(file).column("offset").to_pylist()]


class Field:
    """A log on a disk, and a lake beside it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = WrittenLog()
        self.begins: Begins = {PARTITION.partition: 0}

    def grow(self, segments: int) -> None:
        for number in range(segments):
            self.log.append([NewRecord(b"%d" % at, None, 1) for at in range(4)])
            self.log.append([NewRecord(b"v", b"k", 1)] * 3, producer_id=5, transactional=True)
            self.log.end_transaction(5, commit=number % 3 != 0)
            self.log.roll()

    def place(self) -> Directories:
        return Directories((str(self.log.save(self.directory / "logs")),))

    def config(self, **given: Any) -> LakeConfig:
        base: dict[str, Any] = {
            "kafka": KafkaProperties({"bootstrap.servers": "127.0.0.1:1"}),
            "topics": (TopicRule(name=TOPIC),),
            "format": "parquet",
            "location": f"file://{self.directory}/lake",
            "state": f"file://{self.directory}/state",
        }
        return LakeConfig(**{**base, **given})

    def backfill(self, files: LocalFiles | None = None, **given: Any) -> BackfillHere:
        config = self.config(**given)
        way = route(config, TOPIC)
        assert way is not None
        spark: Any = SimpleNamespace(
            sparkContext=SimpleNamespace(defaultParallelism=1),
            conf=SimpleNamespace(get=lambda name, default=None: default),
        )
        made = BackfillHere(spark, config, way)
        made.files = made.table.files = files or LocalFiles()
        made.notes = Notes(made.files, way)
        return made

    def run(self, files: LocalFiles | None = None, **given: Any) -> Backfilled:
        return self.backfill(files, **given).run(self.place(), threading.Event())

    @property
    def rows(self) -> list[int]:
        return rows_of(f"file://{self.directory}/lake/{TOPIC}")

    @property
    def expected(self) -> list[int]:
        """Of sealed segments: the last one is empty."""
        return [record.offset for record in self.log.visible]


@pytest.fixture
def field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Field:
    made = Field(tmp_path)

    @contextmanager
    def held(*_given: Any) -> Iterator[None]:
        yield

    def begins(*_given: Any) -> dict[int, int]:
        if isinstance(made.begins, BrokersUnreachable):
            raise made.begins
        return made.begins

    monkeypatch.setattr("headrace.spark.lake.locks.held", held)
    monkeypatch.setattr("headrace.spark.lake.broker.begins", begins)
    monkeypatch.setattr(plan, "LEAST_TASK_BYTES", 400)
    monkeypatch.setattr(plan, "MOST_TASK_BYTES", 400)
    monkeypatch.setattr(plan, "TASKS_OF_A_CORE", 2)
    return made


def test_all_of_a_history_is_there_once_and_the_lake_is_told_where_it_ends(field: Field) -> None:
    field.grow(12)
    heard: list[int] = []
    backfill = field.backfill()
    done = backfill.run(field.place(), threading.Event(), lambda each: heard.append(each.read_bytes))
    assert field.rows == field.expected
    assert (done.complete, done.rows, done.ends) == (True, len(field.expected), {3: field.log.end})
    assert done.steps > 2
    assert heard == sorted(heard)
    assert heard[-1] == done.total_bytes
    assert backfill.notes.ends() == done.ends
    assert done.files == len(list(Path(f"{field.directory}/lake/{TOPIC}").glob("*.parquet")))


def test_killed_before_anything_that_it_changes_and_run_again(field: Field) -> None:
    field.grow(10)
    for steps in range(200):
        try:
            field.run(DyingFiles(steps))
        except Killed:
            found = field.rows
            assert len(set(found)) == len(found), steps
            if steps > 1:
                with pytest.raises(Unfinished):
                    field.backfill().notes.ends()
        else:
            break
    assert field.rows == field.expected
    assert steps > 10


def test_killed_after_each_kill_a_little_later(field: Field) -> None:
    """Each run gets further than the one before: what is killed is a repetition, not only a first try."""
    field.grow(9)
    lives = 0
    for lives in range(300):
        try:
            field.run(DyingFiles(4 + lives % 9))
        except Killed:
            continue
        break
    assert lives > 3
    assert field.rows == field.expected
    assert not list(Path(f"{field.directory}/lake/{TOPIC}/_headrace/staging").glob("*"))


def test_a_commit_that_the_table_has_forgotten_is_known_by_its_rows(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    field.grow(10)
    backfill = field.backfill()
    dies_after = iter([False, True])

    def commit(*given: Any) -> None:
        Backfill.commit(backfill, *given)
        if next(dies_after):
            raise Killed

    monkeypatch.setattr(backfill, "commit", commit)
    with pytest.raises(Killed):
        backfill.run(field.place(), threading.Event())
    before = field.rows
    monkeypatch.setattr(ParquetTable, "last", lambda *_given: -1)
    assert field.run().complete
    assert field.rows == field.expected
    assert 0 < len(before) < len(field.expected)


def test_what_was_sealed_since_is_loaded_by_the_next(field: Field) -> None:
    field.grow(3)
    field.run()
    field.grow(4)
    done = field.run()
    assert field.rows == field.expected
    assert done.rows < len(field.expected)
    assert field.run().steps == 0


def test_an_open_transaction_and_what_follows_are_left_to_the_lake(field: Field) -> None:
    field.grow(3)
    end = field.log.end
    field.log.append([NewRecord(b"open", None, 1)], producer_id=9, transactional=True)
    field.grow(2)
    done = field.run()
    assert field.rows == field.expected
    assert done.ends == {3: end}


def test_the_rest_can_be_left_to_the_lake(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    field.grow(10)
    with pytest.raises(BackfillFailed, match=r"no backfill of orders has begun"):
        field.backfill().leave_rest()
    backfill = field.backfill()
    written = iter([True, False])
    write_down = backfill.write_down

    def dying(step: Step) -> None:
        if not next(written):
            raise Killed
        write_down(step)

    monkeypatch.setattr(backfill, "write_down", dying)
    with pytest.raises(Killed):
        backfill.run(field.place(), threading.Event())
    left = field.backfill().leave_rest()
    assert left.complete
    assert field.rows == [offset for offset in field.expected if offset < left.ends[3]]
    assert field.backfill().notes.ends() == left.ends


def test_a_table_that_is_gone_is_made_anew(field: Field) -> None:
    field.grow(4)
    field.run()
    LocalFiles().remove(f"file://{field.directory}/lake/{TOPIC}")
    assert field.run().rows == len(field.expected)
    assert field.rows == field.expected


def test_records_of_the_topic_that_nobody_knows_of_are_not_loaded_again(field: Field) -> None:
    field.grow(4)
    field.run()
    LocalFiles().remove(f"file://{field.directory}/state")
    with pytest.raises(BackfillFailed, match=r"has records of orders already, which would be there twice"):
        field.run()
    assert field.rows == field.expected


def test_a_lake_that_has_begun_is_left_alone(field: Field) -> None:
    field.grow(4)
    checkpoint = f"file://{field.directory}/state/{TOPIC}/checkpoint/metadata"
    LocalFiles().create(checkpoint, '{"id": "query"}')
    with pytest.raises(BackfillFailed, match=r"loads orders already.* To begin anew, remove the tables"):
        field.run()
    LocalFiles().remove(checkpoint)
    done = field.run()
    LocalFiles().create(checkpoint, '{"id": "query"}')
    again = field.run()
    assert (again.complete, again.rows, again.ends) == (True, 0, done.ends)


def test_values_that_are_decoded_are_refused_with_what_works(field: Field) -> None:
    field.grow(1)
    typed = (TopicRule(name=TOPIC, format=Format.JSON, schema="id int"),)
    with pytest.raises(BackfillFailed, match=r'decoded from json.*`headrace lake run`.*format = "bytes"'):
        field.run(topics=typed)


def test_a_place_that_is_no_directory_is_refused(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    field.grow(1)
    landing = ParquetTable.landing
    monkeypatch.setattr(
        ParquetTable, "landing", lambda *given: landing(*given)._replace(directory="s3a://b/t")
    )
    with pytest.raises(Exception, match=r"the table is in s3a://b/t; `headrace lake run`"):
        field.run()


def test_a_disk_without_the_beginning_is_refused_unless_nobody_knows(
    field: Field, caplog: pytest.LogCaptureFixture
) -> None:
    field.log = WrittenLog(start=100)
    field.grow(3)
    with pytest.raises(BackfillFailed, match=r"from offset 100 on, and the brokers from 0: .*--tier"):
        field.run()
    field.begins = BrokersUnreachable("the brokers do not answer")
    assert field.run().complete
    assert "whether the directories have all of orders is not known" in caplog.text


def test_records_that_were_deleted_between_two_runs(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    field.grow(3)
    end = field.run().ends[3]
    field.grow(3)
    start = end + 3
    moved = FileHistory.__init__

    def begins_later(self: FileHistory, *given: Any) -> None:
        moved(self, *given)
        self.start = max(self.start, start)

    monkeypatch.setattr(FileHistory, "__init__", begins_later)
    with pytest.raises(BackfillFailed, match=rf"from offset {end} up to {start} were deleted.*on_data_loss"):
        field.run()
    assert field.run(on_data_loss="continue").complete
    assert field.rows == [offset for offset in field.expected if not end <= offset < start]
