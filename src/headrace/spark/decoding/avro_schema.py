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


def document_for_all(reader: Any, writers: Iterable[Any]) -> Any:
    """The reader's schema, with null for a field that some writer does not have and that has no default.

    Avro alone would refuse the records of that writer. In a table a field that was not there yet is null.
    """
    records = [each for each in (_record_in(writer) for writer in writers) if each is not None]
    record = _record_in(reader)
    if record is None:
        return reader
    fields = []
    for field in record["fields"]:
        theirs = [_field(each, field) for each in records]
        changed = {
            **field,
            "type": document_for_all(field["type"], [each["type"] for each in theirs if each]),
        }
        if "default" not in field and not all(theirs):
            type_ = changed["type"]
            others = [each for each in type_ if each != "null"] if isinstance(type_, list) else [type_]
            changed |= {"type": ["null", *others], "default": None}
        fields.append(changed)
    found = {**record, "fields": fields}
    return [found if each is record else each for each in reader] if isinstance(reader, list) else found


def _record_in(schema: Any) -> Mapping[str, Any] | None:
    """The record that the schema is, or that it is besides null."""
    others = [each for each in schema if each != "null"] if isinstance(schema, list) else [schema]
    return others[0] if len(others) == 1 and is_record(others[0]) else None


def _field(record: Mapping[str, Any], wanted: Mapping[str, Any]) -> Mapping[str, Any] | None:
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
