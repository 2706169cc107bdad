"""Schemas and connectors of a file."""

from __future__ import annotations

from typing import Final

from headrace.config.secret import HIDDEN
from headrace.connect.redaction import is_reference, is_secret
from headrace.desired.document import Subject
from headrace.desired.fields import Fields, count_of, items_of, named, text_of
from headrace.desired.schemas import Schema
from headrace.desired.settings import written
from headrace.desired.yaml_tree import DocumentError, Items, Mapping, Node, Text
from headrace.registry.content import Reference, SchemaType
from headrace.registry.levels import Level

_LEVELS: Final = tuple(level.value for level in Level)
_TYPES: Final = tuple(each.value for each in SchemaType)
_LATEST: Final = -1


def subject_of(name: str, node: Node) -> Subject:
    fields = Fields(node, f"schema {name}", ("schema", "type", "compatibility", "references"))
    level = fields.text("compatibility")
    if level is not None and level not in _LEVELS:
        raise DocumentError(
            f"{level!r} is no compatibility level", fields.line, f"there are {', '.join(_LEVELS)}"
        )
    kind = fields.text("type") or SchemaType.AVRO.value
    if kind not in _TYPES:
        raise DocumentError(f"{kind!r} is no type of schema", fields.line, f"there are {', '.join(_TYPES)}")
    entry = fields.entries.get("schema")
    if entry is None:
        if "type" in fields or "references" in fields:
            raise DocumentError(f"schema {name} has no `schema`", fields.line)
        return Subject(level, None)
    listed = fields.node("references")
    references = tuple(
        _reference(each) for each in ([] if listed is None else items_of(listed, "references"))
    )
    if isinstance(entry, Mapping):
        file = Fields(entry, "schema", ("file",)).text("file")
        if file is None:
            raise DocumentError("write `schema: {file: PATH}`, or the text of the schema", entry.line)
        return Subject(level, Schema(SchemaType(kind), "", references), file)
    return Subject(level, Schema(SchemaType(kind), text_of(entry, "schema"), references))


def _reference(node: Node) -> Reference:
    fields = Fields(node, "a reference", ("name", "subject", "version"))
    name, subject = fields.text("name"), fields.text("subject")
    if name is None or subject is None:
        raise DocumentError("a reference has name, subject and version", fields.line)
    version = fields.entries.get("version")
    if version is None:
        return Reference(name, subject, _LATEST)
    return Reference(name, subject, count_of(version, "version"))


def connector_of(name: str, node: Node) -> dict[str, str]:
    """Its settings. What looks like a secret has to be a reference to a file on the worker."""
    settings: dict[str, str] = {}
    for key, value, line in named(node, f"connector {name}"):
        if key == "name":
            raise DocumentError(f"connector {name} is named by its key: take `name` out", line)
        if isinstance(value, Items):
            text = ",".join(text_of(each, f"{key} of connector {name}") for each in value.items)
        elif not isinstance(value, Text) or value.is_null:
            raise DocumentError(f"{key} of connector {name} is a text", line)
        else:
            text = written(value.text, is_plain=value.is_plain)
        if is_secret(key, None) and text not in ("", HIDDEN) and not is_reference(text):
            raise DocumentError(  # it is not repeated
                f"{key} of connector {name} is a secret, and secrets never stand in this file",
                line,
                "write where it is on the worker, as in ${file:/run/secrets/db.properties:password}",
            )
        settings[key] = text
    if "connector.class" not in settings:
        raise DocumentError(f"connector {name} has no connector.class", node.line)
    return settings
