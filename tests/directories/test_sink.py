"""Records as files of a directory and of a real S3 server: each in one file once, whatever dies, and no file
that a reader has seen ever changes."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import fastavro
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from headrace.connect.api import ConnectorFailure
from headrace.connect.files.places import Place
from tests.directories.running import Decisions, Died, Reading, Worker, lines_of, lives, place_at

_MOMENTS = {"opening", "keeping", "moving", "deciding", "decided", "clearing"}
BEGIN = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)


def _records(count: int, partitions: int = 2, topic: str = "t") -> list[dict[str, Any]]:
    return [
        {
            "topic": topic,
            "partition": number % partitions,
            "offset": number // partitions,
            "timestamp": BEGIN + timedelta(minutes=number),
            "key": f"k{number}".encode(),
            "value": json.dumps({"n": number}).encode(),
        }
        for number in range(count)
    ]


def _content(place: Place, path: str) -> bytes:
    with place.reading(path) as file:
        found: bytes = file.read()
    return found


def test_files_lie_in_folders_by_topic_partition_and_day(settings: dict[str, str]) -> None:
    worker = Worker({**settings, "format": "json"}, Decisions(), _records(100))
    worker.begin()
    assert worker.step(1000)
    place = place_at(settings)
    found = sorted(each.path for each in place.files())
    folders = [each.rpartition("/")[0] for each in found]
    assert folders == [
        f"topic=t/partition={partition}/day=2026-03-{day}" for partition in (0, 1) for day in ("01", "02")
    ]
    assert found[1].rpartition("/")[2].startswith("part-t-0-00000000000000000015-"), "the first offset"
    assert found[0].endswith(".json")
    assert sorted(each["n"] for each in lines_of(place)) == list(range(100))
    assert not worker.step(1000)
    assert all(each.path in found for each in place.files(hidden=True)), "nothing is left behind"


def test_hours_or_no_folders_at_all(settings: dict[str, str]) -> None:
    for folders in ("day,hour", "topic"):
        records = _records(60, 1, folders[:3])
        worker = Worker({**settings, "format": "text", "folders": folders}, Decisions(), records)
        worker.begin()
        worker.step(1000)
    found = sorted(each.path.rpartition("/")[0] for each in place_at(settings).files())
    assert found == ["day=2026-03-01/hour=23", "day=2026-03-02/hour=00", "topic=top"]


def test_through_deaths_each_record_is_there_once(settings: dict[str, str]) -> None:
    records, log, chance, place = _records(20), Decisions(), random.Random(11), place_at(settings)
    deaths: Counter[str] = Counter()
    seen: dict[str, bytes] = {}

    def dies(moment: str) -> None:
        if chance.random() < 0.15:
            deaths[moment] += 1
            raise Died(moment)

    for _ in range(200):
        worker = Worker({**settings, "format": "json"}, log, records, dies)
        try:
            worker.begin()
            while worker.step(chance.randrange(5, 25)):
                pass
            if set(deaths) >= _MOMENTS:
                break
            records = _records(len(records) + 20)
        except Died:
            pass
        for each in place.files():
            content = _content(place, each.path)
            assert seen.setdefault(each.path, content) == content, "what is in its place does not change"
        twice = [n for n, count in Counter(each["n"] for each in lines_of(place)).items() if count > 1]
        assert twice == [], "at no moment"
    assert set(deaths) >= _MOMENTS
    assert sorted(each["n"] for each in lines_of(place)) == list(range(len(records)))
    # What was left by the dead goes with the next batch.
    last = Worker({**settings, "format": "json"}, log, _records(len(records) + 2))
    last.begin()
    assert last.step(10)
    assert {each.path for each in place.files(hidden=True)} == {each.path for each in place.files()}


def test_a_worker_that_was_away_decides_nothing_and_loses_nothing(settings: dict[str, str]) -> None:
    """Both think that the connector is theirs, and each stages the same records."""
    records, log, place = _records(40), Decisions(), place_at(settings)
    given = {**settings, "format": "json"}
    newer = Worker(given, log, records)

    def overtaken(moment: str) -> None:
        if moment == "deciding":
            newer.begin()
            assert newer.step(15)

    older = Worker(given, log, records, overtaken)
    older.begin()
    with pytest.raises(ConnectorFailure, match="another driver has decided"):
        older.step(10)
    assert sorted(each["n"] for each in lines_of(place)) == list(range(30))
    while newer.step(10):
        pass
    assert sorted(each["n"] for each in lines_of(place)) == list(range(40))


def test_a_worker_that_decides_last_is_followed_by_the_other(settings: dict[str, str]) -> None:
    """It died between its decision and the first file; the other one, which has begun before that, goes
    on."""
    records, log, place = _records(40), Decisions(), place_at(settings)
    given = {**settings, "format": "json"}
    second = Worker(given, log, records)

    def dies(moment: str) -> None:
        if moment == "deciding":
            second.begin()
            second.sink.stage(second.batch(10))
        if moment == "moving":
            raise Died(moment)

    first = Worker(given, log, records, dies)
    first.begin()
    with pytest.raises(Died):
        first.step(15)
    assert lines_of(place) == []
    with pytest.raises(ConnectorFailure, match="another driver has decided"):
        second.step(10)
    second = Worker(given, log, records)
    second.begin()
    assert len(lines_of(place)) == 30, "what was decided is published before all else"
    while second.step(10):
        pass
    assert sorted(each["n"] for each in lines_of(place)) == list(range(40))


def test_to_publish_again_changes_nothing(settings: dict[str, str]) -> None:
    log, place = Decisions(), place_at(settings)
    worker = Worker({**settings, "format": "json"}, log, _records(20))
    worker.begin()
    worker.step(100)
    before = place.files(hidden=True)
    other = Worker({**settings, "format": "json"}, log, _records(20))
    other.begin()
    assert place.files(hidden=True) == before
    assert not other.step(100), "it goes on where the decision says"


def test_what_is_written_can_be_read_by_the_source(settings: dict[str, str]) -> None:
    records, log = _records(60, 3), Decisions()
    worker = Worker({**settings, "format": "json"}, log, records)
    reading = Reading({**settings, "format": "json"})
    worker.begin()
    while worker.step(4):
        reading.drain()
    assert sorted(json.loads(each)["n"] for each in reading.drain()) == list(range(60))


@pytest.mark.parametrize("form", ["csv", "parquet", "avro"])
def test_columns(settings: dict[str, str], form: str) -> None:
    records = _records(10, 1)
    records[3]["value"] = records[4]["key"] = None
    worker = Worker({**settings, "format": form, "folders": "topic"}, Decisions(), records)
    worker.begin()
    worker.step(100)
    place = place_at(settings)
    (file,) = place.files()
    content = io.BytesIO(_content(place, file.path))
    if form == "csv":
        rows = pc.read_csv(content).to_pylist()
        assert rows[5]["kafka_value"] == '{"n": 5}'
    else:
        rows = pq.read_table(content).to_pylist() if form == "parquet" else list(fastavro.reader(content))
        assert [each["kafka_value"] for each in rows] == [each["value"] for each in records]
        assert [each["kafka_key"] for each in rows] == [each["key"] for each in records]
    assert [each["kafka_offset"] for each in rows] == list(range(10))
    assert rows[2]["kafka_timestamp"].astimezone(UTC) == BEGIN + timedelta(minutes=2)


@pytest.mark.parametrize(
    ("form", "value", "reason"),
    [
        ("json", b"{", "its value is no JSON"),
        ("text", b"a\nb", "its value has a line break"),
        ("csv", b"\xff", "its value is no text in UTF-8"),
    ],
)
def test_what_a_format_cannot_have_is_refused(
    settings: dict[str, str], form: str, value: bytes, reason: str
) -> None:
    records = _records(5, 1)
    records[2]["value"] = value
    worker = Worker({**settings, "format": form, "folders": "topic"}, Decisions(), records)
    worker.begin()
    worker.step(100)
    (refused,) = worker.rejected
    assert (refused.topic, refused.partition, refused.offset) == ("t", 0, 2)
    assert refused.reason.startswith(reason)
    place = place_at(settings)
    (file,) = place.files()
    content = _content(place, file.path)
    assert content.count(b"\n") == (5 if form == "csv" else 4)
    assert value not in content.splitlines()


def test_a_file_of_refused_records_alone_is_none(settings: dict[str, str]) -> None:
    records = [{**each, "value": b"{"} for each in _records(3, 1)]
    worker = Worker({**settings, "format": "json"}, Decisions(), records)
    worker.begin()
    worker.step(100)
    assert len(worker.rejected) == 3
    assert place_at(settings).files(hidden=True) == []


def test_many_days_in_a_batch(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.spark.connect.connectors.directory_sink._OPEN", 2)
    records = _records(30, 1)
    for each in records:
        each["timestamp"] = BEGIN + timedelta(days=each["offset"] * 7 % 10)
    worker = Worker({**settings, "format": "json"}, Decisions(), records, lives)
    worker.begin()
    worker.step(100)
    place = place_at(settings)
    assert len({each.folder for each in place.files()}) == 10
    assert sorted(each["n"] for each in lines_of(place)) == list(range(30))
