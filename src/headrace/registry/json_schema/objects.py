"""Objects: properties by name, by pattern and all the others, what is required, and what depends on what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from headrace.registry.json_schema.difference import Difference
from headrace.registry.json_schema.documents import Schema

if TYPE_CHECKING:
    from headrace.registry.json_schema.containment import Containment

Plain = Mapping[str, Any]


def differences(proof: Containment, old: Plain, new: Plain, path: str) -> Iterator[Difference]:
    yield from _required(old, new, path)
    names = {**old.get("properties", {}), **new.get("properties", {})}
    for name in names:
        yield from _property(proof, old, new, name, path)
    yield from _patterns(proof, old, new, path)
    place = f"{path}/additionalProperties"
    found = proof.compare(additional(old), additional(new), place)
    if found:
        removed = additional(new) is False
        yield Difference(f"ADDITIONAL_PROPERTIES_{'REMOVED' if removed else 'NARROWED'}", place)
    if "propertyNames" in new:
        yield from proof.compare(
            old.get("propertyNames", True), new["propertyNames"], f"{path}/propertyNames"
        )
    yield from _dependencies(proof, old, new, path)


def additional(schema: Plain) -> Schema:
    """What properties must be that nothing else speaks of."""
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in schema:
            found: Schema = schema[keyword]
            return found
    return True


def _required(old: Plain, new: Plain, path: str) -> Iterator[Difference]:
    before = old.get("required", ())
    # Draft 3 had a flag at the property; it is not a list then.
    for name in new.get("required", ()) if isinstance(new.get("required"), list) else ():
        said = new.get("properties", {}).get(name)
        if name not in before and not (isinstance(said, Mapping) and "default" in said):
            known = name in old.get("properties", {})
            kind = (
                "REQUIRED_ATTRIBUTE_ADDED"
                if known
                else f"REQUIRED_PROPERTY_ADDED_TO_{_model(old)}_CONTENT_MODEL"
            )
            yield Difference(kind, f"{path}/required/{name}")


def _property(proof: Containment, old: Plain, new: Plain, name: str, path: str) -> Iterator[Difference]:
    place = f"{path}/properties/{name}"
    before, now = _schemas_of(old, name), _schemas_of(new, name)
    declared_before = name in old.get("properties", {})
    declared_now = name in new.get("properties", {})
    for demanded in now:
        if any(proof.fits(given, demanded, place) for given in before):
            continue
        reasons = proof.compare(before[0], demanded, place)
        if declared_before and declared_now:
            yield from reasons
        elif declared_now:
            covered = (
                "NOT_COVERED_BY_PARTIALLY_OPEN" if _model(old) == "PARTIALLY_OPEN" else f"TO_{_model(old)}"
            )
            yield Difference(f"PROPERTY_ADDED_{covered}_CONTENT_MODEL", place)
        else:
            covered = (
                "NOT_COVERED_BY_PARTIALLY_OPEN" if _model(new) == "PARTIALLY_OPEN" else f"FROM_{_model(new)}"
            )
            yield Difference(f"PROPERTY_REMOVED_{covered}_CONTENT_MODEL", place)


def _model(schema: Plain) -> str:
    rest = additional(schema)
    if rest is False and not schema.get("patternProperties"):
        return "CLOSED"
    return "OPEN" if rest in (True, {}) and not schema.get("patternProperties") else "PARTIALLY_OPEN"


def _schemas_of(schema: Plain, name: str) -> list[Schema]:
    """All that a property of this name must be."""
    found: list[Schema] = []
    if name in schema.get("properties", {}):
        found.append(schema["properties"][name])
    found += [
        part for pattern, part in schema.get("patternProperties", {}).items() if _matches(pattern, name)
    ]
    return found or [additional(schema)]


@lru_cache(maxsize=1000)
def _validator(pattern: str) -> jsonschema_rs.Validator:
    """Not Python's `re`: the dialect is another one, and it could be kept busy for ever."""
    return jsonschema_rs.validator_for({"type": "string", "pattern": pattern})


def _matches(pattern: str, name: str) -> bool:
    return _validator(pattern).is_valid(name)


def _patterns(proof: Containment, old: Plain, new: Plain, path: str) -> Iterator[Difference]:
    before, now = old.get("patternProperties", {}), new.get("patternProperties", {})
    for pattern, demanded in now.items():
        place = f"{path}/patternProperties/{pattern}"
        # A name that matches this pattern may match any of the old ones, or none.
        sources = [before[pattern]] if pattern in before else [additional(old), *before.values()]
        for given in sources:
            yield from proof.compare(given, demanded, place)
    for pattern, given in before.items():
        if pattern not in now:
            yield from proof.compare(given, additional(new), f"{path}/patternProperties/{pattern}")


def _dependencies(proof: Containment, old: Plain, new: Plain, path: str) -> Iterator[Difference]:
    for name, demanded in _required_with(new).items():
        given = _required_with(old).get(name)
        if not demanded <= {*(given or ()), *_list(old.get("required"))}:
            kind = "ADDED" if given is None else "EXTENDED"
            yield Difference(f"DEPENDENCY_ARRAY_{kind}", f"{path}/dependencies/{name}")
    for name, schema in _schemas_with(new).items():
        place = f"{path}/dependencies/{name}"
        before = _schemas_with(old).get(name)
        found = proof.compare(True if before is None else before, schema, place)
        if found and before is None:
            yield Difference("DEPENDENCY_SCHEMA_ADDED", place)
        else:
            yield from found


def _required_with(schema: Plain) -> dict[str, set[str]]:
    """Which properties must come with one. Until draft 7 both kinds of dependencies stood in one place."""
    found: dict[str, set[str]] = {}
    for keyword in ("dependencies", "dependentRequired"):
        for name, others in schema.get(keyword, {}).items():
            if isinstance(others, list):
                found.setdefault(name, set()).update(others)
    return found


def _schemas_with(schema: Plain) -> dict[str, Schema]:
    """What an object must be as well if it has a property."""
    return {
        name: part
        for keyword in ("dependencies", "dependentSchemas")
        for name, part in schema.get(keyword, {}).items()
        if not isinstance(part, list)
    }


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
