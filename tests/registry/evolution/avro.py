"""How Avro schemas change."""

from __future__ import annotations

import json

from tests.registry.evolution.case import Case


def _record(*fields: object, name: str = "R", **rest: object) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": list(fields), **rest}


def _field(name: str, kind: object, **rest: object) -> dict[str, object]:
    return {"name": name, "type": kind, **rest}


def _avro(name: str, old: object, new: object, backward: bool, forward: bool) -> Case:
    return Case("AVRO", name, json.dumps(old), json.dumps(new), backward, forward)


def _avro_field(name: str, old: object, new: object, backward: bool, forward: bool) -> Case:
    """Of the one field of a record."""
    return _avro(name, _record(_field("f", old)), _record(_field("f", new)), backward, forward)


_ONE = _field("one", "int")
_SYMBOLS = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
_MORE_SYMBOLS = {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}
_NEXT = _field("next", ["null", "R"], default=None)
_LIST = _record(_field("value", "int"), _NEXT)

AVRO = [
    _avro("nothing changes", _record(_ONE), _record(_ONE), True, True),
    _avro(
        "a field with a default is added",
        _record(_ONE),
        _record(_ONE, _field("two", "int", default=2)),
        True,
        True,
    ),
    _avro(
        "a field without a default is added", _record(_ONE), _record(_ONE, _field("two", "int")), False, True
    ),
    _avro(
        "a field with a default is removed",
        _record(_ONE, _field("two", "int", default=2)),
        _record(_ONE),
        True,
        True,
    ),
    _avro(
        "a field without a default is removed",
        _record(_ONE, _field("two", "int")),
        _record(_ONE),
        True,
        False,
    ),
    _avro(
        "a nullable field without a default is added",
        _record(_ONE),
        _record(_ONE, _field("two", ["null", "int"])),
        False,
        True,
    ),
    _avro(
        "fields change places",
        _record(_ONE, _field("two", "string")),
        _record(_field("two", "string"), _ONE),
        True,
        True,
    ),
    _avro("a field is renamed", _record(_ONE), _record(_field("uno", "int")), False, False),
    _avro(
        "a field is renamed with an alias",
        _record(_ONE),
        _record(_field("uno", "int", aliases=["one"])),
        True,
        False,
    ),
    _avro(
        "a default changes",
        _record(_field("f", "int", default=1)),
        _record(_field("f", "int", default=2)),
        True,
        True,
    ),
    _avro("a doc is added", _record(_ONE), _record(_ONE, doc="of something"), True, True),
    _avro("the record is renamed", _record(_ONE), _record(_ONE, name="S"), False, False),
    _avro(
        "the record is renamed with an alias",
        _record(_ONE),
        _record(_ONE, name="S", aliases=["R"]),
        True,
        False,
    ),
    _avro("the namespace changes", _record(_ONE, namespace="a"), _record(_ONE, namespace="b"), True, True),
    _avro_field("int becomes long", "int", "long", True, False),
    _avro_field("int becomes float", "int", "float", True, False),
    _avro_field("int becomes double", "int", "double", True, False),
    _avro_field("long becomes float", "long", "float", True, False),
    _avro_field("long becomes double", "long", "double", True, False),
    _avro_field("float becomes double", "float", "double", True, False),
    _avro_field("string becomes bytes", "string", "bytes", True, True),
    _avro_field("int becomes string", "int", "string", False, False),
    _avro_field("boolean becomes int", "boolean", "int", False, False),
    _avro_field("null becomes int", "null", "int", False, False),
    _avro_field("a type becomes a union with it", "int", ["null", "int"], True, False),
    _avro_field("a union gets a branch", ["null", "int"], ["null", "int", "string"], True, False),
    _avro_field("a union's branches change places", ["null", "int"], ["int", "null"], True, True),
    _avro_field("a union's branch is promoted", ["null", "int"], ["null", "long"], True, False),
    _avro_field("a union of another type", ["null", "int"], ["null", "string"], False, False),
    _avro_field("a union of one becomes its branch", ["int"], "int", True, True),
    _avro_field("a symbol is added", _SYMBOLS, _MORE_SYMBOLS, True, False),
    _avro_field(
        "a symbol is added, with a default",
        {**_SYMBOLS, "default": "A"},
        {**_MORE_SYMBOLS, "default": "A"},
        True,
        True,
    ),
    _avro_field("symbols change places", _SYMBOLS, {**_SYMBOLS, "symbols": ["B", "A"]}, True, True),
    _avro_field("an enum becomes a string", _SYMBOLS, "string", False, False),
    _avro_field("an enum is renamed", _SYMBOLS, {**_SYMBOLS, "name": "F"}, False, False),
    _avro_field(
        "items are promoted",
        {"type": "array", "items": "int"},
        {"type": "array", "items": "long"},
        True,
        False,
    ),
    _avro_field(
        "items become nullable",
        {"type": "array", "items": "int"},
        {"type": "array", "items": ["null", "int"]},
        True,
        False,
    ),
    _avro_field(
        "values are promoted",
        {"type": "map", "values": "int"},
        {"type": "map", "values": "double"},
        True,
        False,
    ),
    _avro_field(
        "a map becomes an array",
        {"type": "map", "values": "int"},
        {"type": "array", "items": "int"},
        False,
        False,
    ),
    _avro_field(
        "a fixed grows",
        {"type": "fixed", "name": "F", "size": 4},
        {"type": "fixed", "name": "F", "size": 8},
        False,
        False,
    ),
    _avro_field("a fixed becomes bytes", {"type": "fixed", "name": "F", "size": 4}, "bytes", False, False),
    _avro_field(
        "a logical type is added", "long", {"type": "long", "logicalType": "timestamp-millis"}, True, True
    ),
    _avro(
        "a field in a nested record is added",
        _record(_field("in", _record(_ONE, name="I"))),
        _record(_field("in", _record(_ONE, _field("two", "int"), name="I"))),
        False,
        True,
    ),
    _avro(
        "a recursive record gets a field",
        _LIST,
        _record(_field("value", "int"), _NEXT, _field("more", "int", default=0)),
        True,
        True,
    ),
    _avro(
        "a recursive record changes inside", _LIST, _record(_field("value", "string"), _NEXT), False, False
    ),
    _avro("a primitive is promoted", "int", "long", True, False),
    _avro("a primitive changes", "int", "string", False, False),
]
