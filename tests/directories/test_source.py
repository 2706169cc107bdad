"""Files of a directory and of a real S3 server, each read once, whatever dies."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.connect.api import ConnectorFailure, GiveUp
from headrace.connect.plugins import all_settings
from headrace.connect.settings import BadSetting
from headrace.spark.connect.connectors.directory_source import DirectorySource
from tests.directories.running import Died, Reading, config_of, place_at, put_file


def _lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in rows)


def test_each_file_is_read_once(settings: dict[str, str]) -> None:
    place = place_at(settings)
    reading = Reading({**settings, "format": "json", "key.field": "id", "file.pattern": "*.json"})
    assert reading.drain() == []
    put_file(place, "2026/a.json", _lines({"id": 1}, {"id": "x"}) + b"\n" + b'{"v": [1.50]}')
    for hidden in ("_headrace/b.json", "2026/.c.json", "2026/d.csv"):
        put_file(place, hidden, _lines({"id": 9}))
    put_file(place, "e.json", b"")
    assert reading.drain() == [b'{"id": 1}', b'{"id": "x"}', b'{"v": [1.50]}'], "as they stand"
    assert [each.key for each in reading.topic] == ["1", "x", None]
    reading.restart()
    put_file(place, "f.json", _lines({"id": 2}))
    assert reading.drain()[3:] == [b'{"id": 2}']
    assert [partition["directory"] for partition, _ in reading.position] == ["", "2026"]


def test_a_file_that_changed_after_it_was_read_is_a_sentence(settings: dict[str, str]) -> None:
    place = place_at(settings)
    put_file(place, "a.json", _lines({"id": 1}))
    reading = Reading({**settings, "format": "json"})
    assert len(reading.drain()) == 1
    put_file(place, "a.json", _lines({"id": 1}, {"id": 2}))
    put_file(place, "b.json", _lines({"id": 3}))
    with pytest.raises(ConnectorFailure, match=r"a\.json changed after it was read: it has 20 bytes now\."):
        reading.drain()
    reading.settings["changed.files"] = "skip"
    reading.restart()
    assert reading.drain()[1:] == [b'{"id": 3}'], "the others are read"


def test_a_file_that_changes_while_it_is_read_is_not_published(settings: dict[str, str]) -> None:
    place = place_at(settings)
    put_file(place, "a.json", _lines({"id": 1}))
    reading = Reading({**settings, "format": "json"})

    def grows(moment: str) -> None:
        if moment == "reading":
            put_file(place, "a.json", _lines({"id": 1}, {"id": 2}))

    with pytest.raises(ConnectorFailure, match=r"a\.json was changed while it was read"):
        reading.step(grows)
    assert reading.topic == []
    assert len(reading.drain()) == 2, "then it is read as it is now"

    def goes(moment: str) -> None:
        if moment == "planned":
            place.delete("b.json")

    put_file(place, "b.json", _lines({"id": 1}))
    with pytest.raises(ConnectorFailure, match=r"b\.json was taken away while it was read"):
        reading.step(goes)
    assert len(reading.drain()) == 2


def test_large_files_come_in_pieces_through_deaths(settings: dict[str, str]) -> None:
    place, chance = place_at(settings), random.Random(5)
    given = []
    for file in range(4):
        count = 50 + 90 * (file % 2)
        rows = [{"file": file, "row": row, "x": "é" * chance.randrange(60)} for row in range(count)]
        put_file(place, f"{file}.json", _lines(*rows).removesuffix(b"\n"))
        given += rows
    reading = Reading({**settings, "format": "json", "batch.bytes": "1500", "tasks.max": "2"})
    deaths = 0

    def dies(moment: str) -> None:
        nonlocal deaths
        if chance.random() < (0.002 if moment == "reading" else 0.1):
            deaths += 1
            raise Died(moment)

    found = [json.loads(each) for each in reading.drain(dies)]
    assert deaths >= 5
    assert sorted(found, key=str) == sorted(given, key=str)
    for file in range(4):
        order = [each["row"] for each in found if each["file"] == file]
        assert order == list(range(len(order))), "a file's rows stay in order"


def test_what_is_half_published_may_not_change(settings: dict[str, str]) -> None:
    place = place_at(settings)
    put_file(place, "d/a.json", _lines(*({"id": number} for number in range(100))))
    reading = Reading({**settings, "format": "json", "batch.bytes": "300"})
    assert reading.step()
    place.delete("d/a.json")
    with pytest.raises(GiveUp, match=r"d/a\.json is gone after its first 2.. bytes were published"):
        reading.step()
    offset = dict(next(iter(reading.position))[1])
    del offset["begun"]
    reading.position = reading.position.moved({"directory": "d"}, offset)
    put_file(place, "d/a.json", _lines({"id": 7}))
    assert reading.drain()[-1] == b'{"id": 7}'


def test_files_can_be_deleted_when_they_are_published(settings: dict[str, str]) -> None:
    place = place_at(settings)
    reading = Reading({**settings, "format": "json", "files.after.reading": "delete"})
    for number in range(3):
        put_file(place, "same.json", _lines({"n": number}))
        assert len(reading.drain()) == number + 1
        assert place.files() == [], "so its name may come again"
    put_file(place, "same.json", _lines({"n": 3}))

    def dies(moment: str) -> None:
        if moment == "decided":
            raise Died(moment)

    with pytest.raises(Died):
        reading.step(dies)
    reading.restart()
    assert len(reading.drain()) == 4
    assert place.files() == []


def _gz(content: bytes) -> bytes:
    return gzip.compress(content)


def _csv(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=";").writerows(rows)
    return b"\xef\xbb\xbf" + text.getvalue().encode()


def _parquet() -> bytes:
    made = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2], "at": pa.array([0, None], pa.timestamp("us", "UTC"))}), made)
    return made.getvalue()


def _avro() -> bytes:
    made = io.BytesIO()
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    fields = [{"name": "p", "type": price}, {"name": "b", "type": "bytes"}]
    fastavro.writer(
        made, {"type": "record", "name": "R", "fields": fields}, [{"p": Decimal("1.50"), "b": b"\x00"}]
    )
    return made.getvalue()


FORMS: Mapping[str, tuple[str, bytes, list[Any]]] = {
    "a.txt": ("text", b"one\r\ntwo\n\nfour", [b"one", b"two", b"", b"four"]),
    "a.txt.gz": ("text", _gz(b"one\ntwo\n"), [b"one", b"two"]),
    "a.json.gz": ("json", _gz(_lines({"a": 1})), [b'{"a": 1}']),
    "a.csv": (
        "csv",
        _csv([["id", "note"], ["1", 'two\nlines; "quoted"'], ["2", ""]]),
        [{"id": "1", "note": 'two\nlines; "quoted"'}, {"id": "2", "note": ""}],
    ),
    "a.parquet": (
        "parquet",
        _parquet(),
        [{"id": 1, "at": "1970-01-01T00:00:00+00:00"}, {"id": 2, "at": None}],
    ),
    "a.avro": ("avro", _avro(), [{"p": "1.50", "b": b"\x00"}]),
}


@pytest.mark.parametrize("name", list(FORMS))
def test_formats(settings: dict[str, str], name: str) -> None:
    form, content, rows = FORMS[name]
    put_file(place_at(settings), name, content)
    reading = Reading({**settings, "format": form, "csv.delimiter": ";"})
    assert reading.drain() == rows


@pytest.mark.parametrize(
    ("form", "name", "content", "told"),
    [
        (
            "json",
            "a.json",
            b'{"a": 1}\n{"a": \n',
            r"a\.json has at byte 9 a line that is no JSON.*format=text",
        ),
        ("csv", "a.csv", b"a,b\n1,2\n3\n", r"a\.csv, line 3: 1 values for 2 columns"),
        ("csv", "a.csv", b"a,b\n\xff,2\n", r"a\.csv is no CSV in UTF-8"),
        ("parquet", "a.parquet", b"PAR1 or not", r"a\.parquet is no Parquet"),
        ("avro", "a.avro", b"Obj\x01", r"a\.avro is no file of Avro"),
        ("json", "a.json.zst", b"", r"of compressed files only \.gz is read"),
    ],
)
def test_what_cannot_be_read_is_told_by_its_name(
    settings: dict[str, str], form: str, name: str, content: bytes, told: str
) -> None:
    put_file(place_at(settings), name, content)
    reading = Reading({**settings, "format": form})
    with pytest.raises(GiveUp, match=told):
        reading.drain()
    assert reading.topic == []


def test_columns_without_a_header_have_spark_s_names(settings: dict[str, str]) -> None:
    put_file(place_at(settings), "a.csv", b"1\t2\n")
    reading = Reading({**settings, "format": "csv", "csv.header": "false", "csv.delimiter": "\\t"})
    assert reading.drain() == [{"_c0": "1", "_c1": "2"}]


def test_what_a_converter_is_asked_for(settings: dict[str, str]) -> None:
    put_file(place_at(settings), "a.json", _lines({"id": 1}))
    converters = {"value.converter": "JsonConverter", "key.converter": "JsonConverter", "key.field": "id"}
    reading = Reading({**settings, "format": "json", **converters})
    assert reading.drain() == [{"id": 1}]
    assert reading.topic[0].key == 1


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"s3.endpoint": "here:9000"}, "s3.endpoint"),
        ({"aws.access.key.id": "me"}, "aws.secret.access.key"),
        ({"csv.delimiter": "::"}, "csv.delimiter"),
    ],
)
def test_settings_that_do_not_fit(given: dict[str, str], wrong: str) -> None:
    config = config_of(DirectorySource, {"location": "/data", "format": "csv", **given})
    assert list(DirectorySource.check(config)) == [wrong]


@pytest.mark.parametrize("location", ["data", "ftp://host/x", "s3://", "file://x"])
def test_a_location_is_a_whole_path(location: str) -> None:
    with pytest.raises(BadSetting, match="beginning with /, or s3://BUCKET/PREFIX"):
        all_settings(DirectorySource)["location"].parse(location)


def test_a_bucket_that_is_not_there_is_told(object_store: Any) -> None:
    reading = Reading({"location": "s3://no-such-bucket/x", "format": "json", **object_store.settings})
    with pytest.raises(ConnectorFailure, match="there is no bucket no-such-bucket"):
        reading.step()
    wrong = {**object_store.settings, "aws.secret.access.key": "wrong"}
    reading = Reading({"location": object_store.location(), "format": "json", **wrong})
    with pytest.raises(ConnectorFailure, match=r"cannot list s3://tests/some/.*signature"):
        reading.step()
