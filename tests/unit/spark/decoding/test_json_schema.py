"""JSON Schema documents become columns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.spark.decoding import json_schema
from headrace.spark.decoding.formats import DecodingRefused


def _columns(properties: dict[str, Any], **rest: Any) -> dict[str, str]:
    document = {"type": "object", "properties": properties, **rest}
    found = json_schema.columns(json.dumps(document))
    return {
        field.name: field.dataType.simpleString() + ("" if field.nullable else " not null")
        for field in found.fields
    }


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"type": "integer"}, "bigint"),
        ({"type": "number"}, "double"),
        ({"type": ["integer", "number"]}, "double"),
        ({"type": "boolean"}, "boolean"),
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": "string", "format": "email"}, "string"),
        ({"type": "integer", "format": "int32"}, "int"),
        ({"type": "integer", "format": "int64"}, "bigint"),
        ({"type": "number", "format": "float"}, "float"),
        ({"type": "string", "format": "int32"}, "string"),
        ({"enum": ["a", "b", None]}, "string"),
        ({"enum": [1, 2]}, "bigint"),
        ({"const": True}, "boolean"),
        ({"type": "array", "items": {"type": "integer"}}, "array<bigint>"),
        ({"type": "array", "items": [{"type": "integer"}]}, "array<string>"),
        ({"type": "array"}, "array<string>"),
        ({"type": "object", "properties": {"x": {"type": "number"}}}, "struct<x:double>"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map<string,bigint>"),
        ({"type": "object"}, "string"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "bigint"),
        ({"oneOf": [{"type": "null"}, {"type": "object", "properties": {"y": {}}}]}, "struct<y:string>"),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, "string"),
        ({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 3}]}, "bigint"),
        ({"type": "string", "anyOf": [{"format": "email"}, {"format": "date"}]}, "string"),
        ({"type": "object", "anyOf": [{"properties": {"y": {}}}] * 2}, "struct<y:string>"),
        ({"type": "object", "oneOf": [{"properties": {"y": {}}}, {"properties": {"z": {}}}]}, "string"),
        ({"type": ["integer", "string"]}, "string"),
        ({}, "string"),
        (True, "string"),
        ({"$ref": "#/$defs/there"}, "struct<z:bigint>"),
        ({"$ref": "#anchored"}, "struct<z:bigint>"),
        ({"$ref": "#before-2019"}, "bigint"),
        ({"allOf": [{"$ref": "#/$defs/there"}, {"properties": {"w": {}}}]}, "struct<z:bigint,w:string>"),
    ],
)  # fmt: skip
def test_types(schema: Any, type_: str) -> None:
    z = {"type": "integer", "$id": "#before-2019"}
    there = {"there": {"type": "object", "$anchor": "anchored", "properties": {"z": z}}}
    assert _columns({"f": schema}, **{"$defs": there}) == {"f": type_}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_properties_beside_a_choice_are_columns(keyword: str) -> None:
    """People write so that one of several must be there, or that more is there for some kind."""
    choice: dict[str, Any] = {keyword: [{"required": ["a"]}, {"required": ["b"]}]}
    assert _columns({"a": {"type": "integer"}, "b": {"type": "number"}}, required=["b"], **choice) == {
        "a": "bigint", "b": "double not null",
    }  # fmt: skip
    inner = {"type": "object", "properties": {"a": {"type": "integer"}}, **choice}
    assert _columns({"in": inner}) == {"in": "struct<a:bigint>"}
    kinds = [
        {"properties": {"kind": {"const": 1}, "x": {"type": "integer"}, "y": {}}, "required": ["x"]},
        {"properties": {"kind": {"const": 2}, "x": {"type": "number"}, "z": {"type": "integer"}}},
        {"type": "null"},
    ]
    assert _columns({"kind": {"type": "integer"}}, required=["kind"], **{keyword: kinds}) == {
        "kind": "bigint not null", "x": "string", "y": "string", "z": "bigint",
    }  # fmt: skip


def test_required_fields_are_not_nullable_unless_they_may_be_null() -> None:
    found = _columns(
        {"a": {"type": "integer"}, "b": {"type": ["null", "integer"]}, "c": {"type": "integer"}},
        required=["a", "b"],
    )
    assert found == {"a": "bigint not null", "b": "bigint", "c": "bigint"}


def test_other_documents_are_found_by_name() -> None:
    place = json.dumps({"$defs": {"p": {"type": "integer"}}, "type": "object",
                        "properties": {"x": {"$ref": "#/$defs/p"}}})  # fmt: skip
    order = {"type": "object", "properties": {"to": {"$ref": "place.json"}}}
    found = json_schema.columns(json.dumps(order), [("place.json", place)])
    assert found.simpleString() == "struct<to:struct<x:bigint>>"


@pytest.mark.parametrize(
    "document",
    [
        "{",
        '{"type":"integer"}',
        "[]",
        '{"properties":{"a":{"$ref":"#/nowhere"}}}',
        '{"properties":{"a":{"$ref":"elsewhere.json"}}}',
        '{"properties":{"a":{"$ref":"#nowhere"}}}',
        '{"properties":{"a":{"$ref":"#"}}}',
    ],
)
def test_what_has_no_columns_is_refused(document: str) -> None:
    with pytest.raises(DecodingRefused, match="JSON Schema"):
        json_schema.columns(document)


def test_an_anchor_that_is_not_there_is_not_called_endless() -> None:
    with pytest.raises(DecodingRefused, match="refers to #nowhere, which is not there"):
        json_schema.columns('{"properties":{"a":{"$ref":"#nowhere"}}}')
