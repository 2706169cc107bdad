"""Avro schemas as documents; fastavro says whether what comes out is one."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from headrace.spark.decoding.avro_schema import (
    as_record,
    document_for_all,
    marked,
    parse,
    twins,
    with_references,
)
from headrace.spark.decoding.formats import DecodingRefused


def _record(name: str, *fields: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **rest}


def _through(writer: Any, record: Any, reader: Any) -> Any:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(writer), record)
    out.seek(0)
    return fastavro.schemaless_reader(out, fastavro.parse_schema(writer), fastavro.parse_schema(reader))


def test_bare_names_are_schemas_too() -> None:
    assert parse('"string"') == parse("string") == parse(b" string ") == "string"
    with pytest.raises(DecodingRefused, match="not JSON"):
        parse("strin")


def test_the_marker_is_filled_in_for_whatever_was_read() -> None:
    writer = _record("R", {"name": "a", "type": "int"})
    assert _through(writer, {"a": 1}, marked(writer)) == {"a": 1, "__decoded": True}


def test_a_field_that_a_writer_lacks_becomes_null_at_every_depth() -> None:
    old = _record("R", {"name": "in", "type": _record("I", {"name": "x", "type": "int"})})
    new = _record(
        "R",
        {"name": "in", "type": _record("I", {"name": "x", "type": "long"}, {"name": "y", "type": "string"})},
        {"name": "z", "type": ["string", "null"]},
        {"name": "d", "type": "int", "default": 7},
    )
    with pytest.raises(fastavro.read.SchemaResolutionError):
        _through(old, {"in": {"x": 1}}, new)
    reader = document_for_all(new, [old, new])
    assert _through(old, {"in": {"x": 1}}, reader) == {"in": {"x": 1, "y": None}, "z": None, "d": 7}
    full = {"in": {"x": 2, "y": "b"}, "z": "c", "d": 8}
    assert _through(new, full, reader) == full


def test_a_field_that_the_items_of_a_writer_lack_becomes_null() -> None:
    """Also where the writer calls the type by its name, since it stood somewhere else before."""

    def schema(*more: dict[str, Any]) -> dict[str, Any]:
        line = _record("Line", {"name": "sku", "type": "string"}, *more)
        place = _record("Place", {"name": "x", "type": "int"}, *more)
        places = {"type": "array", "items": ["null", place]}
        return _record(
            "R",
            *([] if more else [{"name": "first", "type": line}]),
            {"name": "lines", "type": {"type": "array", "items": line if more else "Line"}},
            {"name": "places", "type": ["null", {"type": "map", "values": places}]},
        )

    old, new = schema(), schema({"name": "at", "type": "long"})
    record = {"first": {"sku": "a"}, "lines": [{"sku": "b"}], "places": {"k": [None, {"x": 1}]}}
    reader = document_for_all(new, [old, new])
    assert _through(old, record, reader) == {
        "lines": [{"sku": "b", "at": None}], "places": {"k": [None, {"x": 1, "at": None}]},
    }  # fmt: skip
    full = {"lines": [{"sku": "b", "at": 1}], "places": {"k": [{"x": 1, "at": 2}]}}
    assert _through(new, full, reader) == full


def test_where_all_writers_have_a_field_it_stays_as_it_is() -> None:
    new = _record("R", {"name": "b", "aliases": ["a"], "type": "int"}, {"name": "c", "type": "string"})
    renamed = _record("R", {"name": "a", "type": "int"}, {"name": "c", "type": "string"})
    assert document_for_all(new, [renamed, new]) == new
    assert document_for_all("string", ["string"]) == "string"


def test_names_that_differ_only_in_case_are_found_at_every_depth() -> None:
    twin = _record("I", *({"name": name, "type": "int"} for name in ("x", "y", "X")))
    assert twins(twin) == ("x", "X")
    for type_ in (twin, {"type": "array", "items": twin}, ["null", {"type": "map", "values": twin}]):
        assert twins(_record("R", {"name": "x", "type": "int"}, {"name": "in", "type": type_})) == ("x", "X")
    assert twins(_record("R", {"name": "in", "type": _record("I", {"name": "in", "type": "I"})})) is None
    assert twins("string") is None


def test_types_of_other_documents_are_written_out_once() -> None:
    point = _record("Point", {"name": "x", "type": "int"}, namespace="geo")
    line = _record(
        "Line", {"name": "a", "type": "Point"}, {"name": "b", "type": "geo.Point"}, namespace="geo"
    )
    route = _record(
        "Route",
        {"name": "lines", "type": {"type": "array", "items": "geo.Line"}},
        {"name": "via", "type": {"type": "map", "values": ["null", "geo.Point"]}},
        namespace="shop",
    )
    references = [("geo.Point", json.dumps(point)), ("geo.Line", json.dumps(line))]
    whole = with_references(route, references)
    assert json.dumps(whole).count('"name": "Point"') == 1
    record = {"lines": [{"a": {"x": 1}, "b": {"x": 2}}], "via": {"k": {"x": 3}, "n": None}}
    assert _through(whole, record, whole) == record
    assert with_references(point, []) == point


@pytest.mark.parametrize(
    ("schema", "value"), [("string", "k"), (["null", "long"], None), (["null", "long"], 5)]
)
def test_a_bare_value_has_the_bytes_of_a_record_with_one_field(schema: Any, value: Any) -> None:
    bare, record = io.BytesIO(), io.BytesIO()
    fastavro.schemaless_writer(bare, fastavro.parse_schema(schema), value)
    fastavro.schemaless_writer(record, fastavro.parse_schema(as_record(schema)), {"value": value})
    assert bare.getvalue() == record.getvalue()
