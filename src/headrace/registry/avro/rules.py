"""Rules of Avro that fastavro lets pass and Avro's own parser does not. ValueError says which was broken."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_NAMED: Final = ("record", "error", "enum", "fixed")


def check_rules(source: Any) -> None:
    if isinstance(source, list):
        _check_union(source)
    elif isinstance(source, Mapping):
        kind = source.get("type")
        if kind in _NAMED:
            _check_name(source.get("name"))
        if kind in ("record", "error"):
            _check_fields(source)
        for place in ("type", "items", "values"):
            check_rules(source.get(place))


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name: letters, digits and underscores, no digit first")


def _check_fields(record: Mapping[str, Any]) -> None:
    fields = record.get("fields")
    if not isinstance(fields, list):
        raise ValueError(f"record {record.get('name')} has no fields")
    names = [field["name"] for field in fields]
    for field in fields:
        _check_name(field["name"])
        if "type" not in field:
            raise ValueError(f"field {field['name']} has no type")
        check_rules(field["type"])
    if len(set(names)) != len(names):
        raise ValueError(f"record {record.get('name')} has two fields of one name")


def _check_union(branches: list[Any]) -> None:
    kinds = [_branch(branch) for branch in branches]
    if len(set(kinds)) != len(kinds):
        raise ValueError(f"a union has two branches of one kind: {', '.join(kinds)}")
    for branch in branches:
        if isinstance(branch, list):
            raise ValueError("a union directly in a union")
        check_rules(branch)


def _branch(branch: Any) -> str:
    if not isinstance(branch, Mapping):
        return str(branch)
    if "name" in branch:
        return f"{branch.get('namespace', '')}.{branch['name']}"
    return str(branch.get("type"))
