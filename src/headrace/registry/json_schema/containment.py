"""Whether a new JSON Schema takes everything that an old one took.

A schema is a conjunction. The new one takes all if each of its parts does, and a part does if something that
the old one demands implies it. The proof is by structure: where none is found the schemas count as
incompatible, which may be too strict, never too lax. Two rules are laxer on purpose, as Confluent has them: a
property that is newly required is no break if it has a default, and alternatives of `oneOf` are taken to
exclude each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from headrace.registry.json_schema import arrays, objects, scalars
from headrace.registry.json_schema.difference import Difference
from headrace.registry.json_schema.documents import Documents, Schema

TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
_STEPS: Final = 50_000
_DEPTH: Final = 5
_COMBINING: Final = (
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
)
_INDEPENDENT: Final = frozenset(
    (
        *("type", "maxLength", "minLength", "pattern", "multipleOf"),
        *("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"),
        *("maxItems", "minItems", "maxProperties", "minProperties"),
    )
)
"""Keywords that mean the same wherever they stand."""
_DYNAMIC: Final = ("$dynamicRef", "$recursiveRef")
_ANNOTATIONS: Final = frozenset(
    (
        *(
            "$schema",
            "$id",
            "id",
            "$anchor",
            "$dynamicAnchor",
            "$comment",
            "$defs",
            "$vocabulary",
            "definitions",
        ),
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
        *("format", "contentEncoding", "contentMediaType", "contentSchema"),
    )
)


class _Parts(NamedTuple):
    """A schema taken apart into what must hold all together."""

    plain: Mapping[str, Any]
    """Keywords without any that combine schemas."""
    every: Sequence[Schema]
    choices: Sequence[tuple[str, Sequence[Schema]]]
    """Groups of which one must hold: (keyword, alternatives)."""
    never: Sequence[Schema]
    condition: Mapping[str, Any]
    """if, then and else, as they stand."""


class Containment:
    def __init__(self, old: Documents, new: Documents) -> None:
        self._old = old
        self._new = new
        self._known: dict[tuple[int, int, bool], list[Difference]] = {}
        self._journal: list[tuple[int, int, bool]] = []
        """The keys of `_known` in the order in which they came."""
        self._alive: list[Schema] = []
        """Schemas that were made on the way: an identity must not be given to another while it is a key."""
        self._steps = 0
        self._swapped = False

    def differences(self) -> list[Difference]:
        return self.compare(self._old.root, self._new.root, "")

    def compare(self, old: Schema, new: Schema, path: str) -> list[Difference]:
        if old is False or new is True or new == {}:
            return []
        self._steps += 1
        if self._steps > _STEPS:
            return [Difference("TOO_COMPLEX_TO_COMPARE", path)]
        key = (id(old), id(new), self._swapped)
        if key not in self._known:
            self._alive += (old, new)
            # Taken for compatible while it is being compared: what holds itself fails elsewhere or not.
            self._known[key] = []
            self._journal.append(key)
            self._known[key] = self._compare(old, new, path)
        return self._known[key]

    def fits(self, old: Schema, new: Schema, path: str) -> bool:
        """As `compare`, for a way out of several. What was only assumed on a way that failed is forgotten."""
        before = len(self._journal)
        found = self.compare(old, new, path)
        if found:
            for key in self._journal[before:]:
                del self._known[key]
            del self._journal[before:]
        return not found

    def _compare(self, old: Schema, new: Schema, path: str) -> list[Difference]:
        demanded = self._parts(new, self._new if not self._swapped else self._old)
        given = self._parts(old, self._old if not self._swapped else self._new)
        if isinstance(new, bool):
            return [] if _impossible(given) else [Difference("SCHEMA_IS_FALSE", path)]
        given = given._replace(plain=self._gathered(given, self._old if not self._swapped else self._new))
        found = self._plain(given, demanded.plain, path)
        for at, part in enumerate(demanded.every):
            if not self._implied(given, part, path):
                found += self.compare(old, part, f"{path}/allOf/{at}")
        for keyword, alternatives in demanded.choices:
            found += self._choice(old, given, keyword, alternatives, path)
        for part in demanded.never:
            found += self._never(given, part, path)
        if demanded.condition and not self.same(given.condition, demanded.condition):
            found.append(Difference("CONDITION_CHANGED", f"{path}/if"))
        if any(word in new for word in _DYNAMIC) and not self._old.same_as(self._new):
            found.append(Difference("DYNAMIC_REFERENCE_CHANGED", path))
        return found

    def same(self, old: object, new: object) -> bool:
        """Word for word, where no proof is tried. A reference in it may lead elsewhere than before."""
        return old == new and ('"$ref"' not in json.dumps(new) or self._old.same_as(self._new))

    # --- parts -------------------------------------------------------------------------------------------

    def _parts(self, schema: Schema, documents: Documents) -> _Parts:
        if isinstance(schema, bool):
            return _Parts({}, (), (), () if schema else (True,), {})
        if isinstance(schema.get("$ref"), str) and documents.references_stand_alone:
            return _Parts({}, [documents.target(schema)], (), (), {})
        plain = {name: value for name, value in schema.items() if name not in _COMBINING}
        every = list(schema.get("allOf", ()))
        if isinstance(schema.get("$ref"), str):
            every.append(documents.target(schema))
        choices = [(name, schema[name]) for name in ("anyOf", "oneOf") if name in schema]
        # A choice of one is none.
        every += [alternatives[0] for _, alternatives in choices if len(alternatives) == 1]
        choices = [choice for choice in choices if len(choice[1]) > 1]
        condition = {
            name: schema[name] for name in ("if", "then", "else") if name in schema and "if" in schema
        }
        return _Parts(plain, every, choices, [schema["not"]] if "not" in schema else [], condition)

    def _gathered(self, given: _Parts, documents: Documents, depth: int = 0) -> Mapping[str, Any]:
        """The old schema's own keywords, and what its parts demand beside them. That is less than all of it
        together, so whatever follows from it follows from the schema."""
        gathered = dict(given.plain)
        for part in given.every if depth < _DEPTH else ():
            parts = self._parts(part, documents)
            for name, value in self._gathered(parts, documents, depth + 1).items():
                if name == "required" and isinstance(value, list):
                    gathered[name] = [*gathered.get(name, ()), *value]
                elif name == "properties":
                    gathered[name] = {**value, **gathered.get(name, {})}
                elif name in _INDEPENDENT and not isinstance(value, bool):
                    flag = gathered.get(f"exclusive{name.capitalize()}")
                    if not isinstance(flag, bool):  # draft 4: it would make a limit of another part stricter
                        gathered.setdefault(name, value)
        return gathered

    def _implied(self, given: _Parts, new: Schema, path: str) -> bool:
        """Whether one part of the old schema alone is enough."""
        if any(self.fits(part, new, path) for part in given.every):
            return True
        return any(
            all(self.fits(alternative, new, path) for alternative in alternatives)
            for _, alternatives in given.choices
        )

    def _plain(self, given: _Parts, new: Mapping[str, Any], path: str) -> list[Difference]:
        if not any(name not in _ANNOTATIONS for name in new):
            return []
        found = self._keywords(given.plain, new, path)
        if found and self._implied(given, new, path):
            return []
        if found and given.choices and not _says_something(given.plain):
            # The alternatives say more about what is wrong than the emptiness beside them.
            closer = [self.compare(item, new, path) for _, items in given.choices for item in items]
            found = next((reasons for reasons in closer if reasons), found)
        elif found and len(given.every) == 1 and not _says_something(given.plain):
            found = self.compare(given.every[0], new, path) or found
        return found

    def _choice(
        self, old: Schema, given: _Parts, keyword: str, alternatives: Sequence[Schema], path: str
    ) -> list[Difference]:
        if self._covered(old, alternatives, path):
            return []
        if any(self._covered(part, alternatives, path) for part in given.every):
            return []
        for word, items in given.choices:
            if (word, keyword) == ("anyOf", "oneOf"):  # what fits two of them is not taken any more
                return [Difference("COMBINED_TYPE_CHANGED", f"{path}/{keyword}")]
            missing = [item for item in items if not self._covered(item, alternatives, path)]
            if not missing:
                return []
            kind = (
                "SUM_TYPE_NARROWED" if len(items) > len(alternatives) else "COMBINED_TYPE_SUBSCHEMAS_CHANGED"
            )
            return [Difference(kind, f"{path}/{keyword}")]
        return [Difference("TYPE_CHANGED", f"{path}/{keyword}")]

    def _covered(self, old: Schema, alternatives: Sequence[Schema], path: str) -> bool:
        """By one of them, or each of its types by one."""
        if any(self.fits(old, item, path) for item in alternatives):
            return True
        kinds = old.get("type") if isinstance(old, Mapping) else None
        if not isinstance(kinds, list) or not isinstance(old, Mapping):
            return False
        return all(
            any(self.fits({**old, "type": kind}, item, path) for item in alternatives) for kind in kinds
        )

    def _never(self, given: _Parts, new: Schema, path: str) -> list[Difference]:
        """All that is forbidden now must have been forbidden before: it is compared the other way round."""
        self._swapped = not self._swapped
        try:
            covered = any(self.fits(new, part, path) for part in given.never)
        finally:
            self._swapped = not self._swapped
        return [] if covered else [Difference("NOT_TYPE_EXTENDED", f"{path}/not")]

    # --- keywords ----------------------------------------------------------------------------------------

    def _keywords(self, old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> list[Difference]:
        values = _values(old)
        allowed = _values(new)
        if allowed is not None:
            taken = {_canonical(value) for value in allowed}
            if values is None or any(_canonical(value) not in taken for value in values):
                kind = (
                    "ENUM_ARRAY_CHANGED"
                    if values is None or not _overlap(values, taken)
                    else "ENUM_ARRAY_NARROWED"
                )
                return [Difference(kind, f"{path}/enum")]
        kinds = _types(old) if values is None else _types_of(values) & _types(old)
        missing = kinds - _types(new)
        if missing:
            changed = not kinds & _types(new)
            return [
                Difference(
                    "TYPE_CHANGED" if changed else "TYPE_NARROWED", f"{path}/type" if path else "/type"
                )
            ]
        found: list[Difference] = []
        for kind in TYPES:
            if kind in kinds and not (kind == "integer" and "number" in kinds):
                found += [
                    Difference(name, f"{path}/{place}") for name, place in scalars.differences(kind, old, new)
                ]
        if "object" in kinds:
            found += objects.differences(self, old, new, path)
        if "array" in kinds:
            found += arrays.differences(self, old, new, path)
        return found


def _types(schema: Mapping[str, Any]) -> set[str]:
    said = schema.get("type")
    kinds = set(TYPES if said is None else [said] if isinstance(said, str) else said)
    return kinds | {"integer"} if "number" in kinds else kinds


def _types_of(values: Iterable[Any]) -> set[str]:
    return {_type_of(value) for value in values}


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "integer" if value == int(value) else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _values(schema: Mapping[str, Any]) -> list[Any] | None:
    """All values that it takes, if it names them."""
    if "const" in schema:
        return [schema["const"]]
    named = schema.get("enum")
    return list(named) if isinstance(named, list) else None


def _overlap(values: Iterable[Any], taken: set[str]) -> bool:
    return any(_canonical(value) in taken for value in values)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _says_something(plain: Mapping[str, Any]) -> bool:
    return any(name not in _ANNOTATIONS for name in plain)


def _impossible(given: _Parts) -> bool:
    return any(part is False for part in given.every) or any(
        part is True or part == {} for part in given.never
    )
