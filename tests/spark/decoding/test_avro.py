"""Avro by a given schema and by those of a registry. The bytes are made by fastavro, not by Spark."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headrace.spark.decoding.decode import decode
from headrace.spark.decoding.evolution import Evolution, evolve
from headrace.spark.decoding.formats import Decoding, DecodingRefused, Format
from headrace.spark.decoding.wire_format import header_of
from tests.spark.decoding.registry_server import RegistryServer, serve

_ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "items", "type": {"type": "array", "items": "string"}, "default": []},
    ],
}
_AT = {"type": "long", "logicalType": "timestamp-millis"}
_MICROS = {"logicalType": "timestamp-micros"}


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with serve() as server:
        yield server


def _order(*fields: dict[str, Any]) -> dict[str, Any]:
    return {**_ORDER, "fields": list(fields)}


def _avro(schema: Any, record: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), record)
    return out.getvalue()


def _number(value: int) -> bytes:
    return _avro("long", value)


def _frame(spark: SparkSession, values: list[bytes | None]) -> DataFrame:
    return spark.createDataFrame([(value,) for value in values], "value binary").coalesce(1)


def _rows(frame: DataFrame, decoding: Decoding) -> list[Any]:
    return decode(frame, decoding).select("decoded", "problem").collect()


def test_poison_gives_a_reason_and_a_record_of_nulls_does_not(spark: SparkSession) -> None:
    nulls = {"type": "record", "name": "Empty", "fields": [{"name": "a", "type": ["null", "int"]}]}
    [empty] = _rows(_frame(spark, [_avro(nulls, {"a": None})]), Decoding(Format.AVRO, json.dumps(nulls)))
    assert empty.decoded.asDict() == {"a": None}
    assert empty.problem is None
    good = _avro(_ORDER, {"id": 1, "note": None, "items": ["x"]})
    poison = [
        b"",
        b"\x02",
        b"hello world, this is text",
        good[:-1],
        # Lengths that no record has: two thousand million items, a string of as many bytes.
        _number(1) + _number(0) + _number(2**31 - 10),
        _number(1) + _number(1) + _number(2**31 - 10) + b"x",
        _number(1) + _number(1) + _number(-5) + b"x",
    ]
    rows = _rows(_frame(spark, [*poison, good, None]), Decoding(Format.AVRO, json.dumps(_ORDER)))
    assert {row.problem for row in rows[:-2]} == {"the bytes are not a record of the Avro schema Order"}
    assert [row.decoded for row in rows[:-2]] == [None] * len(poison)
    assert rows[-2].decoded.asDict() == {"id": 1, "note": None, "items": ["x"]}
    assert rows[-1].asDict() == {"decoded": None, "problem": None}


def test_a_key_may_be_a_bare_value(spark: SparkSession) -> None:
    rows = _rows(_frame(spark, [_avro("string", "k"), b"\x50"]), Decoding(Format.AVRO, '"string"'))
    assert rows[0].decoded.asDict() == {"value": "k"}
    assert rows[1].problem == 'the bytes are not a record of the Avro schema "string"'


def test_a_value_that_may_be_null_still_needs_a_known_schema(
    spark: SparkSession, registry: RegistryServer
) -> None:
    number = registry.register("maybe-value", ["null", "long"])
    values: list[bytes | None] = [
        header_of(number) + b"\x02\x0a",
        header_of(number) + b"\0",
        header_of(9) + b"\0",
    ]
    decoding = Decoding(Format.AVRO, registry=registry.url, subject="maybe-value")
    rows = _rows(_frame(spark, values), decoding)
    assert [row.decoded and row.decoded.value for row in rows] == [5, None, None]
    assert [row.problem for row in rows] == [None, None, "schema id 9 is not registered under maybe-value"]


def test_records_of_several_schemas_in_one_batch(spark: SparkSession, registry: RegistryServer) -> None:
    """A field is added, one widened, one removed; the added one has no default, which Avro alone refuses."""
    old = _order({"name": "id", "type": "int"}, {"name": "gone", "type": "string"})
    new = _order({"name": "id", "type": "long"}, {"name": "added", "type": "string"})
    first, second = registry.register("orders-value", old), registry.register("orders-value", new)
    values = [
        header_of(first) + _avro(old, {"id": 1, "gone": "g"}),
        header_of(second) + _avro(new, {"id": 2**40, "added": "a"}),
        header_of(77) + _avro(old, {"id": 3, "gone": "g"}),
        header_of(second) + b"\x02",
        b'{"id": 4}',
        b"\0",
        None,
    ]
    decoding = Decoding(Format.AVRO, registry=registry.url, subject="orders-value")
    rows = _rows(_frame(spark, values), decoding)
    assert [row.decoded and row.decoded.asDict() for row in rows[:3]] == [
        {"id": 1, "added": None}, {"id": 2**40, "added": "a"}, None,
    ]  # fmt: skip
    assert [row.problem for row in rows] == [
        None,
        None,
        "schema id 77 is not registered under orders-value",
        f"the bytes are not a record of the Avro schema with id {second},"
        " or it cannot be read as Order is now",
        "not in the registry's wire format: the first byte is 0x7B, not 0x00",
        "not in the registry's wire format: shorter than the five bytes of its header",
        None,
    ]
    pinned = Decoding(Format.AVRO, registry=registry.url, subject="orders-value", version=1)
    assert [row.decoded and row.decoded.asDict() for row in _rows(_frame(spark, values[:2]), pinned)] == [
        {"id": 1, "gone": "g"},
        None,  # a long does not fit into the int that the pinned schema has
    ]


def test_older_scales_and_units_are_what_they_were(spark: SparkSession, registry: RegistryServer) -> None:
    """Spark's reader alone makes 0.1234 of 12.34, and January 1970 of milliseconds."""

    def schema(scale: int, unit: str) -> dict[str, Any]:
        price = {"type": "bytes", "logicalType": "decimal", "precision": 10 + scale, "scale": scale}
        at = {"type": "long", "logicalType": f"timestamp-{unit}"}
        return _order({"name": "price", "type": ["null", price]}, {"name": "at", "type": at})

    schemas = [schema(2, "micros"), schema(4, "millis"), schema(2, "millis"), schema(4, "micros")]
    at = datetime(2026, 11, 15, 12, tzinfo=UTC)
    values: list[bytes | None] = []
    for each in schemas:
        number = registry.register("priced-value", each)
        values.append(header_of(number) + _avro(each, {"price": Decimal("12.34"), "at": at}))
    last = values[-1]
    assert last is not None
    values += [header_of(1) + b"\xff", header_of(77) + last[5:], None]
    decoding = Decoding(Format.AVRO, registry=registry.url, subject="priced-value")
    rows = _rows(_frame(spark, values), decoding)
    expected = {"price": Decimal("12.3400"), "at": at.replace(tzinfo=None)}
    assert [row.decoded and row.decoded.asDict() for row in rows] == [expected] * 4 + [None] * 3
    problems = [row.problem for row in rows]
    assert problems[:4] == [None] * 4
    assert problems[4].startswith("the bytes are not a record of the Avro schema with id 1: ")
    assert problems[5:] == ["schema id 77 is not registered under priced-value", None]


def test_a_schema_that_appears_while_a_stream_runs(spark: SparkSession, registry: RegistryServer) -> None:
    """Batch by batch, as within foreachBatch: the columns follow, the table evolves, nothing stops."""
    by = {"name": "by", "type": "string", "default": "?"}
    steps = [
        _order({"name": "id", "type": "int"}, {"name": "price", "type": "float"}),
        _order({"name": "id", "type": "long"}, {"name": "price", "type": "float"}, by),
        _order({"name": "id", "type": "long"}, by),
    ]  # fmt: skip
    decoding = Decoding(Format.AVRO, registry=registry.url, subject="grown-value")
    table, seen = None, []
    for step, schema in enumerate(steps):
        number = registry.register("grown-value", schema)
        record = header_of(number) + _avro(schema, {"id": step, "price": 0.5, "by": "me"})
        decoded = decode(_frame(spark, [record]), decoding)
        columns = decoded.schema["decoded"].dataType
        assert isinstance(columns, StructType)
        evolution = evolve(table or columns, columns)
        assert isinstance(evolution, Evolution)
        table = evolution.schema
        seen.append([str(change) for change in evolution.changes])
        assert decoded.where("problem is null").count() == 1
    assert seen == [[], ["widen column id from int to bigint", "add column by string"], []]
    assert table is not None
    assert table.names == ["id", "price", "by"]


def test_deleted_versions_and_other_subjects_are_still_read(
    spark: SparkSession, registry: RegistryServer
) -> None:
    one, other = _order({"name": "id", "type": "int"}), _order({"name": "id", "type": "long"})
    first, second = registry.register("t/1-value", one), registry.register("t/1-value", other)
    third = registry.register("shop.Order", one)
    registry.delete("t/1-value", 1)
    values: list[bytes | None] = [
        header_of(first) + _avro(one, {"id": 1}), header_of(second) + _avro(other, {"id": 2}),
        header_of(third) + _avro(one, {"id": 3}),
    ]  # fmt: skip
    decoding = Decoding(
        Format.AVRO, registry=registry.url, subject="t/1-value", other_subjects=("shop.Order",)
    )
    assert [row.decoded.id for row in _rows(_frame(spark, values), decoding)] == [1, 2, 3]


def test_a_schema_may_name_others(spark: SparkSession, registry: RegistryServer) -> None:
    place = {"type": "record", "name": "Place", "namespace": "geo", "fields": [{"name": "x", "type": "int"}]}
    registry.register("place", place)
    order = _order({"name": "from", "type": "geo.Place"}, {"name": "to", "type": ["null", "geo.Place"]})
    number = registry.register(
        "moves-value", order, references=({"name": "geo.Place", "subject": "place", "version": 1},)
    )
    written = _avro(
        _order({"name": "from", "type": place}, {"name": "to", "type": ["null", "geo.Place"]}),
        {"from": {"x": 1}, "to": {"x": 2}},
    )
    decoding = Decoding(Format.AVRO, registry=registry.url, subject="moves-value")
    [row] = _rows(_frame(spark, [header_of(number) + written]), decoding)
    assert row.decoded.asDict(recursive=True) == {"from": {"x": 1}, "to": {"x": 2}}


@pytest.mark.parametrize(
    "schema",
    [
        "{",
        '{"type":"record"}',
        '{"type":"nonsense"}',
        json.dumps(_order({"name": "id", "type": "int"}, {"name": "ID", "type": "int"})),
    ],
)
def test_a_schema_that_is_none_is_refused(spark: SparkSession, schema: str) -> None:
    with pytest.raises(DecodingRefused):
        decode(_frame(spark, []), Decoding(Format.AVRO, schema))


def test_a_stream_meets_schemas_that_were_registered_after_it_began(
    spark: SparkSession, registry: RegistryServer, tmp_path: Path
) -> None:
    """A plain streaming frame, whose plan and columns are fixed: later schemas are read into these."""
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    old = _order({"name": "id", "type": "long"}, {"name": "at", "type": _AT})
    finer = _order({"name": "id", "type": "long"}, {"name": "at", "type": {**_AT, **_MICROS}})
    zeroth, first = registry.register("live-value", finer), registry.register("live-value", old)
    at = datetime(2026, 11, 15, 12, tzinfo=UTC)

    def arrive(*values: bytes) -> None:
        _frame(spark, [*values]).write.mode("append").parquet(source)

    arrive(
        header_of(zeroth) + _avro(finer, {"id": 0, "at": at}),
        header_of(first) + _avro(old, {"id": 1, "at": at}),
    )
    decoding = Decoding(Format.AVRO, registry=registry.url, subject="live-value")
    stream = decode(spark.readStream.schema("value binary").parquet(source), decoding)
    query = stream.writeStream.format("parquet").option("path", target).option(
        "checkpointLocation", str(tmp_path / "checkpoint")
    ).start()  # fmt: skip
    try:
        query.processAllAvailable()
        new = _order({"name": "id", "type": "int"}, {"name": "at", "type": _AT}, {"name": "x", "type": "int"})
        second = registry.register("live-value", new)
        late = header_of(second) + _avro(new, {"id": 2, "at": at, "x": 5})
        arrive(
            late, late[:7], header_of(999) + late[5:], b"some text", header_of(first) + b"\x06" + late[6:-1]
        )
        query.processAllAvailable()
    finally:
        query.stop()
    rows = spark.read.parquet(target).collect()
    found = {row.decoded.id: row.decoded.at for row in rows if row.problem is None}
    assert found == dict.fromkeys((0, 1, 2, 3), at.replace(tzinfo=None))
    problems = sorted(row.problem for row in rows if row.problem is not None)
    assert problems[0] == "not in the registry's wire format: the first byte is 0x73, not 0x00"
    assert problems[1] == "schema id 999 is not known to the registry"
    assert problems[2].startswith(f"the bytes are not a record of the Avro schema with id {second}")
