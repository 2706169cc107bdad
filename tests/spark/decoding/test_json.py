"""JSON by a given schema: what fits becomes columns, what does not becomes a reason."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from headrace.spark.decoding.decode import decode
from headrace.spark.decoding.formats import Decoding, DecodingRefused, Format

_SCHEMA = "id bigint not null, name string, at timestamp, inner struct<n: int not null>, list array<int>"
_POISON = {
    b"hello": "not JSON: hello",
    b'{"id":1': 'not JSON: {"id":1',
    b"": "empty: there is no JSON in it",
    b"5": "not a JSON object: 5",
    b'[{"id":1}]': 'not a JSON object: [{"id":1}]',
    b"null": "not a JSON object: null",
    b"{'id':1}": "not JSON: {'id':1}",
    b"\x00\x00\x00\x00\x01{}": "not JSON: \x00\x00\x00\x00\x01{}",
    b'{"id":1,"name":"\xff"}': "not JSON: the bytes are not UTF-8",
    b'{"id":"one"}': "wrong type for field id: one is not bigint",
    b'{"id":9223372036854775808}': "wrong type for field id: 9223372036854775808 is not bigint",
    b'{"id":1,"at":"noon"}': "wrong type for field at: noon is not timestamp",
    b'{"id":1,"inner":{"n":"x"}}': "wrong type for field inner.n: x is not int",
    b'{"id":1,"inner":7}': "wrong type for field inner: 7 is not struct<n:int>",
    b'{"id":1,"list":[1,"x"]}': 'wrong type for field list: [1,"x"] is not array<int>',
    b'{"name":"no id"}': "required field id is missing or null",
    b'{"id":null}': "required field id is missing or null",
    b'{"id":1,"inner":{}}': "required field inner.n is missing or null",
}


def _frame(spark: SparkSession, values: list[bytes | None]) -> DataFrame:
    return spark.createDataFrame([(value,) for value in values], "value binary").coalesce(1)


def _decoded(frame: DataFrame, decoding: Decoding) -> list[Any]:
    return decode(frame, decoding).select("decoded", "problem").collect()


def test_every_kind_of_bad_record_gives_its_reason_and_stops_nothing(spark: SparkSession) -> None:
    good = b'{"id":1,"name":"a","at":"2026-11-15T12:00:00Z","inner":{"n":2},"list":[1,2],"other":true}'
    rows = _decoded(_frame(spark, [*_POISON, good, None]), Decoding(Format.JSON, _SCHEMA))
    assert [row.problem for row in rows] == [*_POISON.values(), None, None]
    assert [row.decoded for row in rows[:-2]] == [None] * len(_POISON)
    found = rows[-2].decoded.asDict(recursive=True)
    assert found.pop("at").isoformat() == "2026-11-15T12:00:00"
    assert found == {"id": 1, "name": "a", "inner": {"n": 2}, "list": [1, 2]}
    assert rows[-1].decoded is None


def test_text_is_utf_8_and_nothing_that_only_looks_like_it(spark: SparkSession) -> None:
    """Also where somebody wrote the letter that decoders put for what they cannot read."""
    texts = ["\ufffd", "a \ufffd b", "naïve 日本 \U0001f600", "x" * 5000]
    good = [b'{"id":1,"name":"%s"}' % text.encode() for text in texts]
    others = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe6\x97", b"\xef\xbf\xbd\x80"]
    bad = [b'{"id":1,"name":"%s"}' % each for each in others]
    rows = _decoded(_frame(spark, [*good, *bad]), Decoding(Format.JSON, _SCHEMA))
    assert [row.decoded.name for row in rows[: len(good)]] == texts
    assert {row.problem for row in rows[len(good) :]} == {"not JSON: the bytes are not UTF-8"}


def test_absent_fields_that_are_not_required_are_null(spark: SparkSession) -> None:
    [row] = _decoded(_frame(spark, [b'{"id":4}']), Decoding(Format.JSON, _SCHEMA))
    assert row.problem is None
    assert row.decoded.asDict() == {"id": 4, "name": None, "at": None, "inner": None, "list": None}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"x":NaN}', 'not JSON: {"x":NaN}'),
        (b'{"x":"NaN"}', "wrong type for field x: NaN is not double"),
        (b'{"x":"Infinity"}', "wrong type for field x: Infinity is not double"),
        (b'{"d":"365"}', "wrong type for field d: 365 is not date"),
    ],
)
def test_a_value_of_another_type_is_not_made_to_fit(spark: SparkSession, value: bytes, reason: str) -> None:
    good = b'{"x":1.5,"d":"2026-11-15"}'
    bad, fine = _decoded(_frame(spark, [value, good]), Decoding(Format.JSON, "x double, d date"))
    assert (bad.decoded, bad.problem) == (None, reason)
    assert (fine.decoded.x, fine.decoded.d.isoformat(), fine.problem) == (1.5, "2026-11-15", None)


def test_a_long_record_is_not_repeated_in_its_reason(spark: SparkSession) -> None:
    [row] = _decoded(_frame(spark, [b"x" * 5000]), Decoding(Format.JSON, _SCHEMA))
    assert row.problem == "not JSON: " + "x" * 57 + "..."


def test_names_that_need_quoting(spark: SparkSession) -> None:
    schema = StructType(
        [StructField("a.b", StructType([StructField("c d", LongType())])), StructField("s", StringType())]
    )
    rows = _decoded(
        _frame(spark, [b'{"a.b":{"c d":1}}', b'{"a.b":{"c d":"x"}}']), Decoding(Format.JSON, schema)
    )
    assert rows[0].decoded["a.b"]["c d"] == 1
    assert rows[1].problem == "wrong type for field a.b.c d: x is not bigint"


def _plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_a_filter_on_problems_does_not_parse_twice(spark: SparkSession) -> None:
    decoded = decode(_frame(spark, [b"{}"]), Decoding(Format.JSON, "id bigint"))
    good = decoded.where("problem is null").select("decoded.id")
    assert _plan(good).count("from_json(StructField(id") == 1
    bad = decoded.where("problem is not null").select("problem")
    assert _plan(bad).count("from_json(StructField(id") == 1


def test_who_reads_good_records_does_not_carry_the_reasons(spark: SparkSession) -> None:
    """Spark finds that out from the columns' form alone, and would not say if it no longer did."""
    required = Decoding(Format.JSON, "id bigint not null, inner struct<n: int not null>")
    decoded = decode(_frame(spark, [b"{}"]), required)
    reason, and_the_value = "parseJson", "Project [value#"
    bad = _plan(decoded.where("problem is not null").select("problem"))
    assert reason in bad
    assert and_the_value in bad
    good = _plan(decoded.where("problem is null").select("decoded.*"))
    assert reason not in good
    # Neither is the text kept beside the parser's answer: it would be copied with each record.
    assert and_the_value not in good
    # And each column is taken from the parser's answer: no struct is made in between.
    assert "struct(" not in good


def test_the_other_columns_stay_and_the_column_may_be_another(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(b'{"id":3}', b"v", 7)], "key binary, value binary, offset bigint")
    [row] = decode(frame, Decoding(Format.JSON, "id bigint"), column="key").collect()
    assert (row.offset, row.value, row.decoded.id, row.problem) == (7, b"v", 3, None)


def test_bytes_are_kept(spark: SparkSession) -> None:
    rows = _decoded(_frame(spark, [b"\xff", None]), Decoding(Format.BYTES))
    assert [row.decoded and row.decoded.value for row in rows] == [b"\xff", None]
    assert [row.problem for row in rows] == [None, None]


@pytest.mark.parametrize("schema", ["bigint", "{not json", b"id bigint"])
def test_a_schema_that_cannot_be_read_is_refused_at_once(spark: SparkSession, schema: str | bytes) -> None:
    with pytest.raises(DecodingRefused, match=r"(?i)schema"):
        decode(_frame(spark, []), Decoding(Format.JSON, schema))
