"""What tasks read of drawn logs, from a directory and from a bucket, beside the list of what is in them.

Readers and partitions are pickled, as Spark does it; no Spark is started."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, LessThan
from pyspark.sql.types import LongType, StringType, StructField, StructType

from headrace.objects import opening
from headrace.protocol.records import NewRecord, Record
from headrace.spark.segments.datasource import HeadraceSegments, SegmentsReader
from headrace.spark.segments.errors import SegmentsRefused
from headrace.spark.segments.options import COLUMNS
from headrace.testing.simulation.memory_objects import MemoryObjects
from headrace.tier.names import encode_id
from tests.unit.arrow.drawn_logs import PRODUCERS, logs
from tests.unit.arrow.test_tiered import CLUSTER, ID, uploaded
from tests.unit.arrow.written_logs import PARTITION, WrittenLog

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMES = ("key", "value", "offset", "timestamp", "headers")


class Bucket(MemoryObjects):
    def close(self) -> None:
        pass


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Callable[[MemoryObjects], None]:
    """What is in every bucket from now on."""

    def held(store: MemoryObjects) -> None:
        bucket = Bucket(lambda: 0)
        bucket._stored = store._stored
        monkeypatch.setattr(opening, "open_bucket", lambda *_, **__: bucket)

    return held


def schema(*names: str) -> StructType:
    kinds = {"offset": LongType()}
    return StructType([StructField(name, kinds.get(name, _Any(name))) for name in names])


class _Any(StringType):
    """As Spark would name the type of this column."""

    def __init__(self, column: str) -> None:
        super().__init__()
        self._column = column

    def simpleString(self) -> str:
        return COLUMNS[self._column]


def reader(options: Mapping[str, str], *filters: Filter, names: tuple[str, ...] = _NAMES) -> SegmentsReader:
    given_options = {"topic": PARTITION.topic, "task.bytes": "1000", **options}
    found = HeadraceSegments(given_options).reader(schema(*names))
    assert list(found.pushFilters(list(filters))) == []
    return found


def read(found: SegmentsReader) -> list[Record]:
    parts = pickle.loads(pickle.dumps(found.partitions()))
    again: SegmentsReader = pickle.loads(pickle.dumps(found))
    return [record for part in parts for record in records(again.read(part))]


def records(found: Iterator[pa.RecordBatch]) -> Iterator[Record]:
    for batch in found:
        assert batch.schema.field("timestamp").type == pa.timestamp("us", tz="UTC")
        for row in batch.to_pylist():
            headers = tuple((each["key"], each["value"]) for each in row["headers"])
            time_ms = (row["timestamp"] - _EPOCH) // timedelta(milliseconds=1)
            yield Record(row["offset"], time_ms, row["key"], row["value"], headers)


def in_bucket() -> dict[str, str]:
    return {"tier": "s3://any", "cluster.id": CLUSTER, "topic.id": encode_id(ID)}


def bounded(log: WrittenLog, first: int, end: int, first_ms: int) -> list[Record]:
    return [each for each in log.visible if first <= each.offset < end and each.timestamp >= first_ms]


def moment(time_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=time_ms)


@given(logs(), st.data())
def test_a_bucket_has_what_a_consumer_would_get(log: WrittenLog, data: st.DataObject) -> None:
    for producer_id in PRODUCERS:
        log.end_transaction(producer_id, commit=data.draw(st.booleans()))
    log.roll()
    first, end = data.draw(st.integers(log.start, log.end)), data.draw(st.integers(log.start, log.end))
    first_ms = data.draw(st.integers(0, 1000))
    with pytest.MonkeyPatch.context() as patched:
        bucket = Bucket(lambda: 0)
        bucket._stored = uploaded(log, folded=data.draw(st.integers(0, 3)))._stored
        patched.setattr(opening, "open_bucket", lambda *_, **__: bucket)
        assert read(reader(in_bucket())) == log.visible
        filters = (
            GreaterThanOrEqual(("offset",), first),
            LessThan(("offset",), end),
            GreaterThan(("timestamp",), moment(first_ms - 1)),
            EqualTo(("partition",), PARTITION.partition),
        )
        assert read(reader(in_bucket(), *filters)) == bounded(log, first, end, first_ms)
        elsewhere = EqualTo(("partition",), PARTITION.partition + 1)
        assert reader(in_bucket(), elsewhere).partitions() == []


@given(logs(), st.data())
def test_a_directory_has_what_a_consumer_would_get(log: WrittenLog, data: st.DataObject) -> None:
    """Also where transactions are open, or their markers are in another task."""
    first_ms = data.draw(st.integers(0, 1000))
    first = data.draw(st.integers(log.start, log.end))
    with TemporaryDirectory() as directory:
        files = {"files": str(log.save(Path(directory)))}
        assert read(reader(files)) == log.visible
        later = (GreaterThanOrEqual(("timestamp",), moment(first_ms)), GreaterThanOrEqual(("offset",), first))
        assert read(reader(files, *later)) == bounded(log, first, log.end, first_ms)
        assert read(reader({**files, "isolation": "read_uncommitted"})) == log.all_records


def long_log() -> WrittenLog:
    log = WrittenLog()
    for _ in range(4):
        for _ in range(10):
            log.append([NewRecord(b"v" * 90, b"%d" % each, log.end) for each in range(3)])
        log.roll()
    return log


def test_tasks_begin_within_segments(hold: Callable[[MemoryObjects], None]) -> None:
    hold(uploaded(long_log()))
    parts = reader(in_bucket()).partitions()
    starts = [span.first_offset for part in parts for span in part.value]
    assert len(parts) > 4
    assert any(start % 30 for start in starts)


def test_a_job_that_has_begun_ends_after_retention_has_been_there(
    hold: Callable[[MemoryObjects], None],
) -> None:
    """Objects stay when the manifest does not name them any more, and then go."""
    log = long_log()
    store = uploaded(log)
    hold(store)
    found = reader(in_bucket())
    parts = found.partitions()
    hold(uploaded(log, start=60))
    assert [each.offset for part in parts for each in records(found.read(part))] == list(range(120))
    with pytest.raises(SegmentsRefused, match="from offset 0 were deleted"):
        reader({**in_bucket(), "startingOffsets": '{"orders": {"3": 0}}'}).partitions()
    for each in [key for key in store._stored if key.endswith("0.log")][:1]:
        store.delete(each, deadline_seconds=1)
    hold(store)
    with pytest.raises(SegmentsRefused, match=r"is not in the store any more.*begin again"):
        read(found)


def test_a_transaction_of_which_nothing_says_how_it_ended_is_no_silent_loss(
    hold: Callable[[MemoryObjects], None],
) -> None:
    log = long_log()
    log.append([NewRecord(b"a")], producer_id=7, transactional=True)
    log.roll()
    log.end_transaction(7, commit=True)
    log.roll()
    store = uploaded(log, indexed=False)
    hold(store)
    with pytest.raises(
        SegmentsRefused, match="nothing says how a transaction of orders-3 at offset 120 ended"
    ):
        read(reader({**in_bucket(), "endingOffsets": '{"orders": {"3": 121}}'}))


def test_only_what_is_named_is_made(tmp_path: Path) -> None:
    files = {"files": str(long_log().save(tmp_path))}
    found = reader(files, names=("offset", "partition"))
    (batch, *_) = found.read(found.partitions()[0])
    assert batch.schema.names == ["offset", "partition"]
    with pytest.raises(SegmentsRefused, match="offset is bigint, not string"):
        HeadraceSegments({"topic": "orders", **files}).reader(
            StructType([StructField("offset", StringType())])
        )
    assert list(found.read(None)) == []


def test_a_time_beyond_all_calendars_is_the_last_one(tmp_path: Path) -> None:
    log = WrittenLog()
    log.append([NewRecord(b"a", None, (1 << 62)), NewRecord(b"b", None, 5)])
    found = reader({"files": str(log.save(tmp_path))}, names=("timestamp",))
    (part,) = found.partitions()
    (batch,) = found.read(part)
    assert batch["timestamp"].cast(pa.int64()).to_pylist() == [((1 << 63) // 1000 - 1) * 1000, 5000]
