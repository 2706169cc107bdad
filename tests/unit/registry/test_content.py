"""Schemas before they are parsed."""

from __future__ import annotations

import contextlib
import hashlib
import uuid

import pytest

from headrace.registry.content import Content, Reference, SchemaType, content_from
from headrace.registry.errors import RegistryError
from headrace.registry.formats import Formats
from headrace.registry.state import State


def test_the_guid_is_the_hash_of_text_and_references() -> None:
    content = Content(SchemaType.AVRO, '"int"', (Reference("n", "s", 258),))
    expected = hashlib.md5(b'"int"' + b"n" + b"s" + b"\0\0\1\2").digest()
    assert content.guid == str(uuid.UUID(bytes=expected))
    assert content.guid != Content(SchemaType.AVRO, '"int"').guid


def test_what_is_not_understood_is_kept() -> None:
    document = {"schema": '"int"', "metadata": {"tags": {"a": ["PII"]}}, "ruleSet": {"domainRules": []}}
    assert content_from(document).document() == document


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"schema": ""},
        {"schema": 3},
        {"schema": "x", "schemaType": "XML"},
        {"schema": "x", "references": [3]},
        {"schema": "x", "references": [{"name": "a", "subject": "b"}]},
    ],
)
def test_what_is_no_schema(document: dict[str, object]) -> None:
    with pytest.raises(RegistryError) as caught:
        content_from(document)
    assert caught.value.code == 42201


@pytest.mark.parametrize("depth", [500, 100_000])
@pytest.mark.parametrize(
    ("kind", "opening", "core", "closing"),
    [
        (SchemaType.AVRO, '{"type":"array","items":', '"int"', "}"),
        (SchemaType.JSON, '{"items":', "{}", "}"),
        (SchemaType.PROTOBUF, "message M {", "", "}"),
    ],
)
def test_a_schema_that_is_nested_deeply(
    kind: SchemaType, opening: str, core: str, closing: str, depth: int
) -> None:
    """Taken, or refused as invalid: never a fault of ours."""
    text = opening * depth + core + closing * depth
    if kind is SchemaType.PROTOBUF:
        text = f'syntax = "proto3"; {text}'
    with contextlib.suppress(RegistryError):
        Formats().parse(State(), Content(kind, text))
