"""The verdict of our rules, compared with what fastavro does when it reads."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
from fastavro.utils import generate_one
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from headrace.registry.avro.schema import AvroSchema

_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_FIELDS = ("a", "b", "c", "d")
_SYMBOLS = ("X", "Y", "Z")
#: A value of each type that can be a default.
_DEFAULTS: dict[str, object] = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 2,
    "float": 0.5,
    "double": 0.25,
    "bytes": "b",
    "string": "s",
}


class _Names:
    """Avro defines each name once. Two schemas of a pair draw the same names, so that types meet."""

    def __init__(self) -> None:
        self._next = 0

    def take(self, kind: str) -> str:
        self._next += 1
        return f"{kind}{self._next}"


@st.composite
def _types(draw: st.DrawFn, names: _Names, depth: int) -> Any:
    kinds = ["primitive", "enum", "fixed"] + (["array", "map", "union", "record"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "primitive":
        return draw(st.sampled_from(_PRIMITIVES))
    if kind == "enum":
        symbols = draw(st.lists(st.sampled_from(_SYMBOLS), min_size=1, unique=True))
        enum: dict[str, Any] = {"type": "enum", "name": names.take("E"), "symbols": symbols}
        if draw(st.booleans()):
            enum["default"] = symbols[0]
        return enum
    if kind == "fixed":
        return {"type": "fixed", "name": names.take("F"), "size": draw(st.integers(1, 2))}
    if kind == "array":
        return {"type": "array", "items": draw(_types(names, depth - 1))}
    if kind == "map":
        return {"type": "map", "values": draw(_types(names, depth - 1))}
    if kind == "union":
        return draw(st.lists(st.sampled_from(_PRIMITIVES), min_size=1, max_size=3, unique=True))
    return draw(_records(names, depth - 1))


@st.composite
def _records(draw: st.DrawFn, names: _Names, depth: int) -> Any:
    name = names.take("R")
    fields: list[dict[str, Any]] = []
    for field in draw(st.lists(st.sampled_from(_FIELDS), max_size=3, unique=True)):
        kind = draw(_types(names, depth))
        entry: dict[str, Any] = {"name": field, "type": kind}
        if isinstance(kind, str) and draw(st.booleans()):
            entry["default"] = _DEFAULTS[kind]
        fields.append(entry)
    return {"type": "record", "name": name, "fields": fields}


@st.composite
def _changed(draw: st.DrawFn, schema: Any) -> Any:
    """The schema with small changes, as people make them."""
    if isinstance(schema, str):
        return draw(
            st.sampled_from(
                (schema, schema, schema, *_PRIMITIVES, ["null", schema] if schema != "null" else schema)
            )
        )
    if isinstance(schema, list):
        kept = draw(st.permutations(schema)) if draw(st.booleans()) else schema
        return kept[1:] if len(kept) > 1 and draw(st.integers(0, 3)) == 0 else kept
    changed = dict(schema)
    for place in ("items", "values"):
        if place in changed:
            changed[place] = draw(_changed(changed[place]))
    if changed["type"] == "enum" and draw(st.booleans()):
        changed["symbols"] = draw(st.lists(st.sampled_from(_SYMBOLS), min_size=1, unique=True))
        if "default" in changed:
            changed["default"] = changed["symbols"][0]
    if changed["type"] == "record":
        fields = [{**field, "type": draw(_changed(field["type"]))} for field in changed["fields"]]
        for field in fields:
            field.pop("default", None)
            if isinstance(field["type"], str) and draw(st.booleans()):
                field["default"] = _DEFAULTS[field["type"]]
        if fields and draw(st.integers(0, 3)) == 0:
            fields = fields[1:]
        if draw(st.integers(0, 2)) == 0:
            fields.append({"name": "added", "type": "int", **({"default": 7} if draw(st.booleans()) else {})})
        changed["fields"] = fields
    return changed


@st.composite
def _pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    schema = draw(_records(_Names(), 2))
    return schema, draw(_changed(schema))


def _written(schema: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, generate_one(schema))
    return out.getvalue()


def _reads(writer: Any, reader: Any, data: bytes) -> bool:
    try:
        fastavro.schemaless_reader(io.BytesIO(data), writer, reader)
    except UnicodeDecodeError:
        # Avro's rules let a string be read from bytes, whatever is in them.
        return True
    except Exception:
        # Whatever it is that goes wrong inside fastavro, the record was not read.
        return False
    return True


@given(pair=_pairs())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_compatible_can_be_read(pair: tuple[Any, Any]) -> None:
    writer, reader = pair
    reasons = AvroSchema.parse(json.dumps(reader), []).cannot_read(AvroSchema.parse(json.dumps(writer), []))
    event("incompatible" if reasons else "compatible")
    if reasons:
        return
    writer, reader = fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    for _ in range(5):
        assert _reads(writer, reader, _written(writer))


@given(pair=_pairs())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_cannot_be_read_is_incompatible(pair: tuple[Any, Any]) -> None:
    writer, reader = pair
    parsed = fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    data = [_written(parsed[0]) for _ in range(5)]
    assume(not all(_reads(*parsed, item) for item in data))
    assert AvroSchema.parse(json.dumps(reader), []).cannot_read(AvroSchema.parse(json.dumps(writer), []))


@given(pair=_pairs())
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_schema_reads_itself_in_every_spelling(pair: tuple[Any, Any]) -> None:
    schema = AvroSchema.parse(json.dumps(pair[0], indent=3), [])
    for text in (schema.text, schema.normalized):
        again = AvroSchema.parse(text, [])
        assert not schema.cannot_read(again)
        assert again.identity == schema.identity
