"""Every pair of a hundred small schemas, judged by every one of some hundred instances."""

from __future__ import annotations

import itertools
import json
from typing import Any

import jsonschema_rs

from headrace.registry.json_schema.schema import JsonSchema

_INT, _STR = {"type": "integer"}, {"type": "string"}


def _of(kind: str, *keywords: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": kind, **each} for each in ({}, *keywords)]


_OBJECTS = _of(
    "object",
    {"required": ["a"]},
    {"required": ["a", "b"]},
    {"properties": {"a": _INT}},
    {"properties": {"a": _STR}},
    {"properties": {"a": {}}},
    {"properties": {"a": _INT}, "additionalProperties": False},
    {"properties": {"a": _INT, "b": _INT}, "additionalProperties": False},
    {"properties": {"a": _INT}, "additionalProperties": _INT},
    {"properties": {"a": _INT}, "unevaluatedProperties": False},
    {"properties": {"a": False}},
    {"properties": {"a": _INT}, "required": ["a"]},
    {"additionalProperties": _INT},
    {"additionalProperties": False},
    {"patternProperties": {"^a": _INT}},
    {"patternProperties": {"^a": _STR}},
    {"patternProperties": {"b$": _INT}},
    {"patternProperties": {"^a": _INT}, "additionalProperties": False},
    {"patternProperties": {"^a": _INT}, "additionalProperties": _STR},
    {"patternProperties": {"^a": _INT}, "properties": {"a": {"maximum": 2}}},
    {"minProperties": 1},
    {"minProperties": 2},
    {"maxProperties": 1},
    {"maxProperties": 2},
    {"propertyNames": {"maxLength": 1}},
    {"dependentRequired": {"a": ["b"]}},
    {"dependencies": {"a": ["b"]}},
    {"dependentSchemas": {"a": {"minProperties": 2}}},
    {"dependencies": {"a": {"minProperties": 2}}},
)
_ARRAYS = _of(
    "array",
    {"items": _INT},
    {"items": _STR},
    {"items": False},
    {"prefixItems": [_INT]},
    {"prefixItems": [_INT, _STR]},
    {"prefixItems": [_INT], "items": False},
    {"prefixItems": [_INT], "items": _INT},
    {"prefixItems": [_INT], "unevaluatedItems": _INT},
    {"minItems": 1},
    {"minItems": 2},
    {"maxItems": 1},
    {"maxItems": 0},
    {"uniqueItems": True},
    {"contains": _INT},
    {"contains": _STR},
    {"contains": _INT, "minContains": 2},
    {"contains": _INT, "minContains": 0},
    {"contains": _INT, "maxContains": 1},
    {"contains": _INT, "minContains": 0, "maxContains": 1},
)
_SCALARS = [
    *_of("string", {"maxLength": 1}, {"maxLength": 2}, {"minLength": 1}, {"pattern": "^a"}, {"pattern": "b"}),
    *_of(
        "number",
        {"maximum": 2},
        {"maximum": 3},
        {"minimum": 1},
        {"exclusiveMaximum": 2},
        {"exclusiveMinimum": 1},
    ),
    *_of(
        "number",
        {"multipleOf": 2},
        {"multipleOf": 0.5},
        {"multipleOf": 3},
        {"minimum": 1, "exclusiveMinimum": 2},
    ),
    *_of("integer", {"maximum": 2}, {"minimum": 0}, {"multipleOf": 2}),
    {"type": "null"},
    {"type": "boolean"},
    {"type": ["integer", "null"]},
    {"type": ["string", "null"]},
    {"type": ["integer", "string", "null"]},
    {"enum": [1, "a"]},
    {"enum": [1]},
    {"enum": [1, 2.0, None]},
    {"const": 1},
    {"type": "string", "enum": ["a", 1]},
    {"maxLength": 1},
    {"maximum": 2},
    {"required": ["a"]},
]
_COMBINED: list[Any] = [
    True,
    False,
    {},
    {"anyOf": [_INT, _STR]},
    {"anyOf": [_STR, {"type": "number"}, {"type": "null"}]},
    {"anyOf": [{"maximum": 2}, {"required": ["a"]}]},
    {"allOf": [_INT, {"maximum": 2}]},
    {"allOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"type": "integer", "allOf": [{"minimum": 1}]},
    {"not": _INT},
    {"not": {"type": "number"}},
    {"not": {"required": ["a"]}},
    {"not": {"not": _INT}},
    {"if": _INT, "then": {"maximum": 2}},
    {"if": _INT, "then": {"maximum": 3}},
    {"$ref": "#/$defs/i", "$defs": {"i": _INT}},
    {"$ref": "#/$defs/i", "maximum": 2, "$defs": {"i": _INT}},
    {"anyOf": [{"type": "object", "required": ["a"]}, {"type": "array", "items": _INT}]},
]
_SCHEMAS: list[Any] = [*_OBJECTS, *_ARRAYS, *_SCALARS, *_COMBINED]

_PLAIN: list[Any] = [None, True, -1, 0, 1, 2, 3, 4, 6, 0.5, 1.5, "", "a", "b", "ab", "abc"]
_FEW: list[Any] = [1, 3, "a", None]
_INSTANCES: list[Any] = [
    *_PLAIN,
    *([list(items) for size in range(4) for items in itertools.product(_FEW[:3], repeat=size)]),
    *({name: value} for name in ("a", "b", "ab") for value in _FEW),
    {},
    *({"a": one, "b": two} for one in _FEW for two in _FEW[:3]),
    *({"a": one, "ab": two} for one in _FEW[:3] for two in _FEW[:3]),
    {"a": 1, "b": 1, "ab": 1},
]


def test_every_pair() -> None:
    parsed = [JsonSchema.parse(json.dumps(schema), {}) for schema in _SCHEMAS]
    taken = [
        {at for at, value in enumerate(_INSTANCES) if validator.is_valid(value)}
        for validator in map(jsonschema_rs.validator_for, _SCHEMAS)
    ]
    proved = missed = 0
    for old, new in itertools.product(range(len(_SCHEMAS)), repeat=2):
        lost = taken[old] - taken[new]
        if not parsed[new].cannot_read(parsed[old]):
            proved += 1
            instance = _INSTANCES[min(lost)] if lost else None
            assert not lost, (_SCHEMAS[old], _SCHEMAS[new], instance)
        elif not lost:
            missed += 1
    # Some of what no instance contradicts has no simple proof; most has.
    assert proved > missed, (proved, missed)
