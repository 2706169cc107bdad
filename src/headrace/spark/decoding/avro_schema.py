"""Avro schemas as documents: what must be done to one before Spark's reader gets it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from headrace.spark.decoding.formats import DecodingRefused

#: A field that only the reader's schema has. Avro fills it in from its default where a record could be read;
#: Spark leaves it null where not. Without it a record whose fields are all null would look like a bad one.
MARKER: Final = "__decoded"
_PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED: Final = frozenset({"record", "error", "enum", "fixed"})
#: Where the types stand that a type is made of.
PARTS: Final = {"array": "items", "map": "values"}


def parse(text: str | bytes) -> Any:
    """A schema may be a bare name, as in "string", which some write without quotes."""
    if isinstance(text, bytes):
        text = text.decode()
    try:
        return json.loads(text)
    except ValueError as error:
        if text.strip() in _PRIMITIVES:
            return text.strip()
        raise DecodingRefused(f"the Avro schema is not JSON: {error}") from None


def is_record(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "record" and "fields" in schema


def as_record(schema: Any) -> Any:
    """The schema, or a record with it as the only field, which is written in the same bytes.

    Spark's reader answers for a bare value that is null with 0, and for one that it cannot read with null.
    """
    if is_record(schema):
        return schema
    return {"type": "record", "name": "__BareValue", "fields": [{"name": "value", "type": schema}]}


def name_of(schema: Any) -> str:
    """For people."""
    return str(schema["name"]) if isinstance(schema, Mapping) and "name" in schema else json.dumps(schema)


def marked(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A record's schema with the marker at its end."""
    return {**schema, "fields": [*schema["fields"], {"name": MARKER, "type": "boolean", "default": True}]}


def twins(schema: Any) -> tuple[str, str] | None:
    """Two fields of one record whose names differ only in case, at whatever depth."""
    if isinstance(schema, list):
        return next(filter(None, map(twins, schema)), None)
    if not isinstance(schema, Mapping):
        return None
    names: dict[str, str] = {}
    for field in schema.get("fields") or ():
        other = names.setdefault(field["name"].lower(), field["name"])
        found = twins(field["type"]) if other == field["name"] else (other, field["name"])
        if found is not None:
            return found
    return twins([schema.get(part) for part in ("type", *PARTS.values())])


def document_for_all(reader: Any, writers: Iterable[Any]) -> Any:
    """The reader's schema, with null for a field that some writer does not have and that has no default.

    Avro alone would refuse the records of that writer. In a table a field that was not there yet is null.
    """
    return _for_all(reader, [without_names(each) for each in writers])


def _for_all(reader: Any, writers: Iterable[Any]) -> Any:
    ours = _besides_null(reader)
    kind = str(ours.get("type")) if isinstance(ours, Mapping) else ""
    theirs = [each for each in map(_besides_null, writers) if each is not None and each["type"] == kind]
    if is_record(ours):
        found = {**ours, "fields": [_field_for_all(each, theirs) for each in ours["fields"]]}
    elif kind in PARTS:
        part = PARTS[kind]
        found = {**ours, part: _for_all(ours[part], [each[part] for each in theirs])}
    else:
        return reader
    return [found if each is ours else each for each in reader] if isinstance(reader, list) else found


def _field_for_all(field: Mapping[str, Any], records: list[Any]) -> dict[str, Any]:
    theirs = [same_field(each, field) for each in records]
    type_ = _for_all(field["type"], [each["type"] for each in theirs if each])
    if "default" in field or all(theirs):
        return {**field, "type": type_}
    others = [each for each in type_ if each != "null"] if isinstance(type_, list) else [type_]
    return {**field, "type": ["null", *others], "default": None}


def _besides_null(schema: Any) -> Any:
    """What the schema is besides null, if that is one type."""
    if not isinstance(schema, list):
        return schema
    others = [each for each in schema if each not in ("null", {"type": "null"})]
    return others[0] if len(others) == 1 else None


def same_field(record: Mapping[str, Any], wanted: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The field of the record that has this one's name, or a name that it had before."""
    names = {wanted["name"], *wanted.get("aliases", ())}
    return next((each for each in record["fields"] if each["name"] in names), None)


def with_references(schema: Any, references: Iterable[tuple[str, str]]) -> Any:
    """The schema as one document: a named type is written out where it is met first, as Avro wants it."""
    known = {}
    for _, text in references:
        document = parse(text)
        known[_full_name(document, "")] = document
    return _written_out(schema, "", known) if known else schema


def _full_name(schema: Mapping[str, Any], namespace: str) -> str:
    name = str(schema["name"])
    if "." in name:
        return name
    within = str(schema.get("namespace", namespace))
    return f"{within}.{name}" if within else name


def _written_out(schema: Any, namespace: str, known: dict[str, Any]) -> Any:
    """`known` loses each type as it is written, since a second definition of the same name is refused."""
    if isinstance(schema, str):
        return _named(schema, namespace, known)
    if isinstance(schema, list):
        return [_written_out(each, namespace, known) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = dict(schema)
    if "name" in schema:
        name = _full_name(schema, namespace)
        known.pop(name, None)
        namespace = name.rpartition(".")[0]
    if "fields" in schema:
        found["fields"] = [
            {**each, "type": _written_out(each["type"], namespace, known)} for each in schema["fields"]
        ]
    for part in ("items", "values"):
        if part in schema:
            found[part] = _written_out(schema[part], namespace, known)
    if not isinstance(schema.get("type"), str) or schema["type"] not in ("record", "error", "enum", "fixed"):
        found["type"] = _written_out(schema.get("type"), namespace, known)
    return found


def _named(name: str, namespace: str, known: dict[str, Any]) -> Any:
    full = name if "." in name or not namespace else f"{namespace}.{name}"
    for each in (full, name):
        if each not in _PRIMITIVES and each in known:
            document = known.pop(each)
            # Its namespace is written down, since it is no longer that of a document of its own.
            found = {**document, "namespace": each.rpartition(".")[0]}
            return _written_out(found, "", known)
    return name


def without_names(schema: Any) -> Any:
    """The schema with the very type in place of each name of one, so that a type may contain itself.

    For comparisons only. Every type is a mapping with `type`, or a list of those.
    """
    return _Naming().replaced(schema, "")


class _Naming:
    def __init__(self) -> None:
        self._types: dict[str, dict[str, Any]] = {}

    def replaced(self, schema: Any, namespace: str) -> Any:
        if isinstance(schema, list):
            return [self.replaced(each, namespace) for each in schema]
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return {"type": schema}
            full = _full_name({"name": schema}, namespace)
            return self._types.get(full) or self._types.get(schema) or {"type": schema}
        if not isinstance(schema, Mapping):
            return {"type": schema}
        kind = schema.get("type")
        if not isinstance(kind, str):
            return self.replaced(kind, namespace)
        if kind not in _PRIMITIVES and kind not in _NAMED and kind not in PARTS:
            return self.replaced(kind, namespace)
        found: dict[str, Any] = dict(schema)
        if kind in _NAMED and "name" in schema:
            found["name"] = _full_name(schema, namespace)
            namespace = found["name"].rpartition(".")[0]
            self._types[found["name"]] = found
        if kind in PARTS:
            found[PARTS[kind]] = self.replaced(schema.get(PARTS[kind]), namespace)
        if "fields" in schema:
            found["fields"] = [
                {**each, "type": self.replaced(each["type"], namespace)} for each in schema["fields"]
            ]
        return found
