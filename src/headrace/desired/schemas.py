"""Schemas as a file has them and a registry gives them: comparable values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from headrace.registry.content import Reference, SchemaType

T = TypeVar("T")


class Schema(NamedTuple):
    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()

    def __str__(self) -> str:
        """On one line, as plans show it."""
        text = " ".join(self.text.split())
        beside = ", ".join(f"{each.name} of {each.subject} {each.version}" for each in self.references)
        kind = "" if self.type is SchemaType.AVRO else f"{self.type.value} "
        return f"{kind}{text}" + (f" with {beside}" if beside else "")

    def says_the_same_as(self, other: Schema) -> bool:
        """In whatever layout. Only a registry knows of further spellings that mean the same."""
        if self.type is not other.type or sorted(self.references) != sorted(other.references):
            return False
        return self.text == other.text or _meaning(self) == _meaning(other)

    def request(self) -> dict[str, object]:
        """As a registry takes it."""
        document: dict[str, object] = {"schema": self.text, "schemaType": self.type.value}
        if self.references:
            document["references"] = [each.document() for each in self.references]
        return document


def _meaning(schema: Schema) -> object:
    if schema.type is SchemaType.PROTOBUF:
        return schema.text.split()
    try:
        return json.loads(schema.text)
    except ValueError:
        return schema.text


def in_order_of_references(schemas: Mapping[str, Schema | None], items: Iterable[tuple[str, T]]) -> list[T]:
    """Those first that others refer to, else by name."""
    todo = dict(sorted(items))
    done: list[T] = []

    def visit(name: str) -> None:
        if name not in todo:
            return
        item = todo.pop(name)
        schema = schemas.get(name)
        for reference in () if schema is None else sorted(schema.references):
            visit(reference.subject)
        done.append(item)

    for name in list(todo):
        visit(name)
    return done
