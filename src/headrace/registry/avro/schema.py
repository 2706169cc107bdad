"""An Avro schema: checked by fastavro, compared by our own rules."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from headrace.registry import errors
from headrace.registry.avro.compatibility import differences
from headrace.registry.avro.model import PRIMITIVES, Avro, build
from headrace.registry.avro.rules import check_rules
from headrace.registry.parsed import Parsed

_ORDER = (
    "name",
    "type",
    "namespace",
    "fields",
    "symbols",
    "items",
    "values",
    "size",
    "default",
    "aliases",
    "doc",
)
"""Of the members of an object in the normalized form; whatever else there is follows by name."""


class AvroSchema:
    def __init__(self, source: Any, resolved: Any, model: Avro) -> None:
        self._source = source
        self._resolved = resolved
        self._model = model

    @classmethod
    def parse(cls, text: str, dependencies: Sequence[str]) -> AvroSchema:
        """`dependencies` come in an order in which each needs only those before it."""
        named: dict[str, Any] = {}
        for dependency in dependencies:
            _check(_source(dependency), named)
        source = _source(text)
        resolved = _check(source, named)
        try:
            return cls(source, resolved, build(resolved, named))
        except (KeyError, TypeError) as error:
            raise errors.invalid_schema(f"{error} is missing in {_short(text)}") from None

    @property
    def text(self) -> str:
        return _dump(self._source)

    @property
    def normalized(self) -> str:
        return _dump(_ordered(self._resolved))

    @property
    def identity(self) -> str:
        return json.dumps(_without_marks(self._resolved), sort_keys=True)

    def cannot_read(self, writer: Parsed) -> list[str]:
        assert isinstance(writer, AvroSchema)
        return differences(self._model, writer._model)

    def formatted(self, format_name: str) -> str:  # noqa: ARG002  Avro has one form only
        return self.text


def _source(text: str) -> Any:
    """A bare name, as clients send for a primitive type, is taken without its quotes too."""
    if text.strip() in PRIMITIVES:
        return text.strip()
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise errors.invalid_schema(f"{_short(text)} of type AVRO is not JSON: {error}") from None


def _check(source: Any, named: dict[str, Any]) -> Any:
    try:
        resolved = fastavro.parse_schema(source, named)
        if isinstance(resolved, dict):
            resolved = {name: value for name, value in resolved.items() if not name.startswith("__")}
        check_rules(source)
    except UnknownType as error:
        raise errors.invalid_schema(f"unknown type {error}") from None
    except (SchemaParseException, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise errors.invalid_schema(f"{_short(json.dumps(source))} of type AVRO: {error!s}") from None
    return resolved


def _ordered(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_ordered(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if set(schema) == {"type"} and isinstance(schema["type"], str):
        return schema["type"]
    known = [name for name in _ORDER if name in schema]
    others = sorted(name for name in schema if name not in _ORDER and not name.startswith("__"))
    return {
        name: schema[name] if name in ("default", "doc") else _ordered(schema[name])
        for name in (*known, *others)
    }


def _without_marks(schema: Any) -> Any:
    """fastavro leaves notes of its own in what it returns; a type in an object of its own is the type."""
    if isinstance(schema, list):
        return [_without_marks(item) for item in schema]
    if isinstance(schema, Mapping):
        if set(schema) == {"type"}:
            return _without_marks(schema["type"])
        return {name: _without_marks(value) for name, value in schema.items() if not name.startswith("__")}
    return schema


def _dump(document: Any) -> str:
    if isinstance(document, dict):
        document = {name: value for name, value in document.items() if not name.startswith("__")}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."
