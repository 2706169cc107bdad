"""Arrays: items by their place, all the others, and what must be among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headrace.registry.json_schema.difference import Difference
from headrace.registry.json_schema.documents import Schema

if TYPE_CHECKING:
    from headrace.registry.json_schema.containment import Containment

Plain = Mapping[str, Any]


def differences(proof: Containment, old: Plain, new: Plain, path: str) -> Iterator[Difference]:
    before, now = _prefix(old), _prefix(new)
    for at in range(max(len(before), len(now))):
        place = f"{path}/items/{at}"
        found = proof.compare(_item(old, at), _item(new, at), place)
        if found and at >= len(now):
            yield Difference("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", place)
        elif found and at >= len(before):
            yield Difference("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", place)
        else:
            yield from found
    listed = bool(before or now)
    place = f"{path}/{'additionalItems' if listed else 'items'}"
    found = proof.compare(_rest(old), _rest(new), place)
    if found and listed:
        removed = _rest(new) is False
        yield Difference(f"ADDITIONAL_ITEMS_{'REMOVED' if removed else 'NARROWED'}", place)
    else:
        yield from found
    yield from _contains(proof, old, new, path)


def _prefix(schema: Plain) -> list[Schema]:
    for keyword in ("prefixItems", "items"):
        if isinstance(schema.get(keyword), list):
            found: list[Schema] = schema[keyword]
            return found
    return []


def _rest(schema: Plain) -> Schema:
    """What items must be that have no place of their own."""
    if "prefixItems" in schema or not isinstance(schema.get("items", []), list):
        said = schema.get("items", schema.get("unevaluatedItems", True))
    else:
        said = schema.get("additionalItems", True) if "items" in schema else True
        if said is True:
            said = schema.get("unevaluatedItems", True)
    found: Schema = said
    return found


def _item(schema: Plain, at: int) -> Schema:
    prefix = _prefix(schema)
    return prefix[at] if at < len(prefix) else _rest(schema)


def _contains(proof: Containment, old: Plain, new: Plain, path: str) -> Iterator[Difference]:
    if "contains" not in new:
        return
    place = f"{path}/contains"
    least = new.get("minContains", 1)
    if least > 0:
        if "contains" not in old or old.get("minContains", 1) < least:
            yield Difference("MIN_CONTAINS_ADDED", place)
        else:
            yield from proof.compare(old["contains"], new["contains"], place)
    largest = new.get("maxContains")
    if largest is not None:
        # Fewer may match only if what matches now matched before, and there were not more of them.
        before = old.get("maxContains") if proof.same(old.get("contains"), new["contains"]) else None
        if before is None or before > largest:
            yield Difference("MAX_CONTAINS_ADDED" if before is None else "MAX_CONTAINS_DECREASED", place)
