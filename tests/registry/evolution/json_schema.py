"""How JSON Schemas change."""

from __future__ import annotations

import json
from typing import Any

from tests.registry.evolution.case import Case


def _json(name: str, old: object, new: object, backward: bool, forward: bool) -> Case:
    return Case("JSON", name, json.dumps(old), json.dumps(new), backward, forward)


def _object(required: tuple[str, ...] = (), *, more: object = True, **properties: object) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    if more is not True:
        schema["additionalProperties"] = more
    return schema


_INT: dict[str, Any] = {"type": "integer"}
_STR: dict[str, Any] = {"type": "string"}

JSON = [
    _json("nothing changes", _object(a=_INT), _object(a=_INT), True, True),
    _json("a property is added to an open object", _object(a=_INT), _object(a=_INT, b=_INT), False, True),
    _json(
        "a property is added to a closed object",
        _object(a=_INT, more=False),
        _object(a=_INT, b=_INT, more=False),
        True,
        False,
    ),
    _json("a property of any value is added", _object(a=_INT), _object(a=_INT, b={}), True, True),
    _json(
        "a property is added that was allowed by its kind",
        _object(a=_INT, more=_STR),
        _object(a=_INT, b=_STR, more=_STR),
        True,
        True,
    ),
    _json(
        "a property is added of another kind",
        _object(a=_INT, more=_STR),
        _object(a=_INT, b=_INT, more=_STR),
        False,
        False,
    ),
    _json(
        "a required property is added to a closed object",
        _object(a=_INT, more=False),
        _object(("b",), a=_INT, b=_INT, more=False),
        False,
        False,
    ),
    _json(
        "a required property with a default is added to a closed object",
        _object(a=_INT, more=False),
        _object(("b",), a=_INT, b={"type": "integer", "default": 0}, more=False),
        True,
        False,
    ),
    _json("a property becomes required", _object(a=_INT), _object(("a",), a=_INT), False, True),
    _json(
        "a property with a default becomes required",
        _object(a={"type": "integer", "default": 1}),
        _object(("a",), a={"type": "integer", "default": 1}),
        True,
        True,
    ),
    _json("an object is closed", _object(a=_INT), _object(a=_INT, more=False), False, True),
    _json("what is additional gets a type", _object(a=_INT), _object(a=_INT, more=_STR), False, True),
    _json("integer becomes number", _INT, {"type": "number"}, True, False),
    _json("integer becomes string", _INT, _STR, False, False),
    _json("a property changes its type", _object(a=_INT), _object(a=_STR), False, False),
    _json("a property's type widens", _object(a=_INT), _object(a={"type": "number"}), True, False),
    _json("null is allowed too", _INT, {"type": ["integer", "null"]}, True, False),
    _json(
        "a type is taken from a list",
        {"type": ["integer", "string", "null"]},
        {"type": ["integer", "null"]},
        False,
        True,
    ),
    _json("a title changes", {"type": "string", "title": "a"}, {"type": "string", "title": "b"}, True, True),
    _json(
        "maxLength grows", {"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 9}, True, False
    ),
    _json("maxLength is added", _STR, {"type": "string", "maxLength": 9}, False, True),
    _json(
        "minLength grows", {"type": "string", "minLength": 1}, {"type": "string", "minLength": 2}, False, True
    ),
    _json("a pattern is added", _STR, {"type": "string", "pattern": "^a"}, False, True),
    _json(
        "a pattern changes",
        {"type": "string", "pattern": "^a"},
        {"type": "string", "pattern": "^b"},
        False,
        False,
    ),
    _json("maximum grows", {"type": "number", "maximum": 5}, {"type": "number", "maximum": 6}, True, False),
    _json("minimum is added", {"type": "number"}, {"type": "number", "minimum": 0}, False, True),
    _json(
        "exclusiveMinimum falls",
        {"type": "number", "exclusiveMinimum": 5},
        {"type": "number", "exclusiveMinimum": 3},
        True,
        False,
    ),
    _json(
        "multipleOf is halved",
        {"type": "integer", "multipleOf": 4},
        {"type": "integer", "multipleOf": 2},
        True,
        False,
    ),
    _json(
        "multipleOf changes",
        {"type": "integer", "multipleOf": 4},
        {"type": "integer", "multipleOf": 3},
        False,
        False,
    ),
    _json("enum grows", {"enum": ["a", "b"]}, {"enum": ["a", "b", "c"]}, True, False),
    _json("enum changes", {"enum": ["a", "b"]}, {"enum": ["a", "c"]}, False, False),
    _json("an enum of strings becomes any string", {"type": "string", "enum": ["a"]}, _STR, True, False),
    _json("const changes", {"const": 1}, {"const": 2}, False, False),
    _json(
        "items widen",
        {"type": "array", "items": _INT},
        {"type": "array", "items": {"type": "number"}},
        True,
        False,
    ),
    _json("items change", {"type": "array", "items": _INT}, {"type": "array", "items": _STR}, False, False),
    _json("maxItems is added", {"type": "array"}, {"type": "array", "maxItems": 3}, False, True),
    _json("minItems falls", {"type": "array", "minItems": 3}, {"type": "array", "minItems": 1}, True, False),
    _json("items must be unique", {"type": "array"}, {"type": "array", "uniqueItems": True}, False, True),
    _json(
        "maxProperties grows",
        {"type": "object", "maxProperties": 3},
        {"type": "object", "maxProperties": 5},
        True,
        False,
    ),
    _json(
        "oneOf gets an alternative",
        {"oneOf": [_INT, _STR]},
        {"oneOf": [_INT, _STR, {"type": "boolean"}]},
        True,
        False,
    ),
    _json("anyOf in another order", {"anyOf": [_INT, _STR]}, {"anyOf": [_STR, _INT]}, True, True),
    _json("a type becomes one of several", _INT, {"oneOf": [_INT, _STR]}, True, False),
    _json(
        "allOf gets a part",
        {"allOf": [_object(a=_INT)]},
        {"allOf": [_object(a=_INT), _object(("b",), b=_INT)]},
        False,
        True,
    ),
    _json("oneOf becomes anyOf", {"oneOf": [_INT, _STR]}, {"anyOf": [_INT, _STR]}, True, False),
    _json(
        "what is forbidden narrows", {"not": {"type": "number"}}, {"not": {"type": "integer"}}, True, False
    ),
    _json(
        "a definition widens",
        {"$ref": "#/definitions/d", "definitions": {"d": _object(a=_INT)}},
        {"$ref": "#/definitions/d", "definitions": {"d": _object(a={"type": "number"})}},
        True,
        False,
    ),
    _json(
        "a recursive schema changes inside",
        {"$ref": "#/definitions/n", "definitions": {"n": _object(v=_INT, next={"$ref": "#/definitions/n"})}},
        {"$ref": "#/definitions/n", "definitions": {"n": _object(v=_STR, next={"$ref": "#/definitions/n"})}},
        False,
        False,
    ),
    _json(
        "a dependency is added",
        _object(a=_INT, b=_INT),
        {**_object(a=_INT, b=_INT), "dependencies": {"a": ["b"]}},
        False,
        True,
    ),
]
