"""Where a `$ref` leads, and what must not be taken for equal because it is spelled alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.registry.errors import RegistryError
from headrace.registry.json_schema.schema import JsonSchema

_DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def _parsed(schema: object, **references: object) -> JsonSchema:
    texts = {name.replace("_", "."): json.dumps(other) for name, other in references.items()}
    return JsonSchema.parse(json.dumps(schema), texts)


def _compatible(old: object, new: object) -> bool:
    return not _parsed(new).cannot_read(_parsed(old))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}},
        {"$ref": "#there", "$defs": {"a": {"$anchor": "there", "type": "integer"}}},
        {"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"type": "integer"}}},
        {"$ref": "part.json", "$defs": {"a": {"$id": "part.json", "type": "integer"}}},
        {
            "$id": "http://x/y.json",
            "$ref": "http://x/z.json",
            "$defs": {"a": {"$id": "z.json", "type": "integer"}},
        },
        {"$ref": "#/allOf/1", "allOf": [{}, {"type": "integer"}]},
    ],
)
def test_inside_a_document(schema: object) -> None:
    assert not _parsed({"type": "integer"}).cannot_read(_parsed(schema))
    assert _parsed({"type": "string"}).cannot_read(_parsed(schema))


def test_other_documents_by_name() -> None:
    other = {"$id": "http://other/", "definitions": {"n": {"type": "integer"}}}
    for reference in ("a.json#/definitions/n", "http://other/#/definitions/n"):
        schema = _parsed({"$ref": reference}, a_json=other)
        assert not _parsed({"type": "number"}).cannot_read(schema)


@pytest.mark.parametrize("reference", ["#/nowhere", "#nowhere", "missing.json", "#/title", "#/allOf/7"])
def test_references_that_lead_nowhere(reference: str) -> None:
    with pytest.raises(RegistryError) as caught:
        _parsed({"title": "x", "allOf": [{}], "properties": {"a": {"$ref": reference}}})
    assert caught.value.code == 42201


def test_data_that_looks_like_a_reference() -> None:
    schema = {"enum": [{"$ref": "#/nowhere"}], "default": {"$ref": "missing"}}
    assert _compatible(schema, schema)


def _conditional(limit: int) -> dict[str, Any]:
    return {"if": {"$ref": "#/$defs/a"}, "then": {"type": "string"}, "$defs": {"a": {"minLength": limit}}}


def test_a_condition_that_refers_to_what_has_changed() -> None:
    assert _compatible(_conditional(1), _conditional(1))
    assert not _compatible(_conditional(1), _conditional(2))


def test_until_draft_7_nothing_counts_beside_a_reference() -> None:
    old: dict[str, Any] = {
        "$ref": "#/definitions/s",
        "maxLength": 3,
        "definitions": {"s": {"type": "string"}},
    }
    new = {"type": "string", "maxLength": 3}
    assert _compatible(old, new)
    assert not _compatible({**old, "$schema": _DRAFT_7}, {**new, "$schema": _DRAFT_7})


def test_both_kinds_of_dependencies_count() -> None:
    old = {"dependentSchemas": {"a": {"minProperties": 2}}}
    assert not _compatible(old, {**old, "dependentRequired": {"a": ["b"]}})


def test_a_list_that_holds_itself_is_compared() -> None:
    def nested(kind: str) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"v": {"type": kind}, "next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}},
        }

    assert _compatible(nested("integer"), nested("integer"))
    assert _compatible(nested("integer"), nested("number"))
    assert not _compatible(nested("integer"), nested("string"))
