"""What counts as compatible takes every instance: schemas and instances are drawn, jsonschema-rs judges."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from headrace.registry.json_schema.schema import JsonSchema

_NAMES = st.sampled_from(("a", "b", "ab"))
_WORDS = st.sampled_from(("", "a", "ab", "xyz", "aaaa"))
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 6), st.sampled_from((0.5, 2.0)), _WORDS)
_VALUES = st.one_of(
    _SCALARS,
    st.lists(_SCALARS, max_size=3),
    st.dictionaries(_NAMES, _SCALARS, max_size=3),
    st.dictionaries(_NAMES, st.one_of(st.lists(_SCALARS, max_size=2), _SCALARS), max_size=3),
)
_LIMITS = st.integers(0, 4)


@st.composite
def _few(draw: st.DrawFn, kind: str, keywords: dict[str, st.SearchStrategy[Any]]) -> dict[str, Any]:
    """A schema of one type with a few keywords: with many, hardly any instance fits."""
    chosen = draw(st.lists(st.sampled_from(sorted(keywords)), max_size=2, unique=True))
    kinds = [kind] if draw(st.booleans()) else [kind, draw(st.sampled_from(("null", "boolean")))]
    schema = {name: draw(keywords[name]) for name in chosen}
    return schema if draw(st.integers(0, 4)) == 0 else {"type": kinds, **schema}


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    strings = {"maxLength": _LIMITS, "minLength": _LIMITS, "pattern": st.sampled_from(("^a", "b"))}
    numbers = {
        **dict.fromkeys(("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"), _LIMITS),
        "multipleOf": st.sampled_from((1, 2, 4, 0.5)),
    }
    names = st.lists(_NAMES, unique=True, min_size=1, max_size=2)
    objects = {
        "properties": st.dictionaries(_NAMES, inner, min_size=1, max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(("^a", "b$")), inner, min_size=1, max_size=1),
        "additionalProperties": st.one_of(st.booleans(), inner),
        "required": names,
        "minProperties": _LIMITS,
        "maxProperties": _LIMITS,
        "propertyNames": st.just({"maxLength": 1}),
        "dependentRequired": st.dictionaries(_NAMES, names, min_size=1, max_size=1),
    }
    arrays = {
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "minItems": _LIMITS,
        "maxItems": _LIMITS,
        "uniqueItems": st.booleans(),
        "contains": inner,
    }
    parts = st.lists(inner, min_size=1, max_size=3)
    combined = st.one_of(*(st.fixed_dictionaries({word: parts}) for word in ("allOf", "anyOf")))
    never = st.fixed_dictionaries({"not": inner})
    values = st.fixed_dictionaries({"enum": st.lists(_VALUES, min_size=1, max_size=3)})
    of_kinds = [
        _few("string", strings),
        _few("number", numbers),
        _few("object", objects),
        _few("array", arrays),
    ]
    return st.one_of(*of_kinds, _few("object", objects), combined, never, values)


_SCHEMAS = st.recursive(
    st.one_of(st.just({}), st.just({"type": "integer"}), st.just({"type": "string"})), _schemas, max_leaves=4
)


@st.composite
def _changed(draw: st.DrawFn, schema: Any) -> Any:
    """Near enough to the schema that a proof is often found."""
    if not isinstance(schema, dict) or draw(st.integers(0, 5)) == 0:
        return draw(st.one_of(st.just(schema), _SCHEMAS))
    changed: dict[str, Any] = {}
    for keyword, value in schema.items():
        step = draw(st.integers(0, 5))
        if step == 0:
            continue
        if isinstance(value, bool) or keyword in ("enum", "required", "type", "pattern", "dependentRequired"):
            changed[keyword] = value
        elif isinstance(value, int):
            changed[keyword] = max(0 if keyword != "multipleOf" else 1, value + draw(st.integers(-1, 1)))
        elif keyword in ("properties", "patternProperties"):
            changed[keyword] = {name: draw(_changed(inner)) for name, inner in value.items()}
        elif isinstance(value, dict):
            changed[keyword] = draw(_changed(value))
        elif isinstance(value, list):
            changed[keyword] = [draw(_changed(inner)) for inner in value]
        else:
            changed[keyword] = value
    return changed


@st.composite
def _pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    schema = draw(_SCHEMAS)
    changed = draw(_changed(schema))
    assume(changed != schema)
    return (schema, changed) if draw(st.booleans()) else (changed, schema)


def _parsed(schema: object) -> JsonSchema:
    return JsonSchema.parse(json.dumps(schema), {})


@given(pair=_pairs(), values=st.lists(_VALUES, min_size=5, max_size=15))
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_compatible_takes_every_instance(pair: tuple[Any, Any], values: list[Any]) -> None:
    old, new = pair
    if _parsed(new).cannot_read(_parsed(old)):
        event("incompatible")
        return
    before, now = jsonschema_rs.validator_for(old), jsonschema_rs.validator_for(new)
    judged = [value for value in values if before.is_valid(value)]
    event(f"compatible, {'some' if judged else 'no'} instances")
    for value in judged:
        assert now.is_valid(value), (old, new, value)


@given(schema=_SCHEMAS)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_schema_takes_what_it_takes(schema: Any) -> None:
    parsed = _parsed(schema)
    assert not parsed.cannot_read(parsed)
    assert not parsed.cannot_read(_parsed(json.loads(parsed.normalized)))
