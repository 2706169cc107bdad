"""Avro schemas as nodes that a reader walks: names are resolved, and depth is bounded, since strangers
register schemas."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
DEEPEST: Final = 64
_RECORDS: Final = frozenset(("record", "error"))


class Unreadable(Exception):
    """A schema or a record that cannot be read; says why."""


class Primitive(NamedTuple):
    kind: str
    logical: str = ""
    scale: int = 0


class Fixed(NamedTuple):
    size: int
    logical: str
    scale: int


class Enum(NamedTuple):
    symbols: tuple[str, ...]


class Array(NamedTuple):
    items: Node


class Map(NamedTuple):
    values: Node


class Union(NamedTuple):
    branches: tuple[Node, ...]


@dataclass(eq=False)
class Record:
    """Not a tuple: it may contain itself."""

    fields: list[tuple[str, Node]] = field(default_factory=list)


Node = Primitive | Fixed | Enum | Array | Map | Union | Record


def parse(text: str, references: Iterable[str] = ()) -> Node:
    """`references`: schemas whose names it uses, each after what it needs itself. Raises Unreadable."""
    names: dict[str, Node] = {}
    for each in references:
        _Parser(names).node(_document(each), "", 0)
    return _Parser(names).node(_document(text), "", 0)


def _document(text: str) -> Any:
    if text.strip() in PRIMITIVES:
        return text.strip()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable("the schema is not JSON") from None


class _Parser:
    def __init__(self, names: dict[str, Node]) -> None:
        self._names = names

    def node(self, schema: Any, namespace: str, depth: int) -> Node:
        if depth > DEEPEST:
            raise Unreadable(f"the schema is nested more than {DEEPEST} levels deep")
        if isinstance(schema, str):
            return Primitive(schema) if schema in PRIMITIVES else self._named(schema, namespace)
        if isinstance(schema, list):
            return Union(tuple(self.node(each, namespace, depth + 1) for each in schema))
        if not isinstance(schema, dict):
            raise Unreadable("the schema is not one of Avro")
        kind = schema.get("type")
        if not isinstance(kind, str):
            return self.node(kind, namespace, depth + 1)
        if kind in _RECORDS:
            return self._record(schema, namespace, depth)
        if kind == "enum":
            symbols = tuple(str(each) for each in _items(schema, "symbols"))
            return self._called(schema, namespace, Enum(symbols))
        if kind == "fixed":
            return self._called(schema, namespace, Fixed(_size(schema), _logical(schema), _scale(schema)))
        if kind == "array":
            return Array(self.node(schema.get("items"), namespace, depth + 1))
        if kind == "map":
            return Map(self.node(schema.get("values"), namespace, depth + 1))
        if kind in PRIMITIVES:
            return Primitive(kind, _logical(schema), _scale(schema))
        return self.node(kind, namespace, depth + 1)

    def _record(self, schema: Mapping[str, Any], namespace: str, depth: int) -> Node:
        record = Record()
        self._called(schema, namespace, record)  # first: a field may be of this type
        inner = _full_name(schema, namespace).rpartition(".")[0]
        for each in _items(schema, "fields"):
            if not isinstance(each, dict):
                raise Unreadable("a field of the schema is not an object")
            record.fields.append((str(each.get("name")), self.node(each.get("type"), inner, depth + 1)))
        return record

    def _called(self, schema: Mapping[str, Any], namespace: str, node: Node) -> Node:
        self._names[_full_name(schema, namespace)] = node
        return node

    def _named(self, name: str, namespace: str) -> Node:
        for full in (f"{namespace}.{name}" if namespace and "." not in name else name, name):
            if full in self._names:
                return self._names[full]
        raise Unreadable(f"the schema uses {name}, which is not there")


def _full_name(schema: Mapping[str, Any], namespace: str) -> str:
    name = str(schema.get("name"))
    if "." in name:
        return name
    own = schema.get("namespace", namespace)
    return f"{own}.{name}" if own else name


def _items(schema: Mapping[str, Any], key: str) -> list[Any]:
    found = schema.get(key)
    if not isinstance(found, list):
        raise Unreadable(f"the schema has no list of {key}")
    return found


def _size(schema: Mapping[str, Any]) -> int:
    size = schema.get("size")
    if not isinstance(size, int) or size < 0:
        raise Unreadable("a fixed type of the schema has no size")
    return size


def _logical(schema: Mapping[str, Any]) -> str:
    return str(schema.get("logicalType", "")).removeprefix("local-")


def _scale(schema: Mapping[str, Any]) -> int:
    scale = schema.get("scale", 0)
    return scale if isinstance(scale, int) and 0 <= scale <= 1000 else 0
