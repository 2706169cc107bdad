"""The difference between a file and a cluster's services: a schema registry, and Connect.

By the rules of `plan.py`: a setting of something that the file names, and that is not in the file, is taken
away; what the file does not name stays, unless it is pruned.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.config.secret import HIDDEN
from headrace.desired.changes import ConnectorChange, SubjectChange
from headrace.desired.document import Document, Subject
from headrace.desired.present import Present, PresentSubject
from headrace.desired.schemas import Schema


def subject_changes(document: Document, present: Present) -> tuple[list[SubjectChange], list[str]]:
    """Of what the file names; and what is refused."""
    changes: list[SubjectChange] = []
    refused: list[str] = []
    for name, wanted in sorted(document.schemas.items()):
        there = present.subjects.get(name)
        if there is None:
            if wanted.schema is None:
                refused.append(f"schema {name} is not there yet, and the file has no `schema` for it")
                continue
            own = None if wanted.level is None else (None, wanted.level)
            changes.append(SubjectChange(name, "create", (None, wanted.schema), own))
            continue
        schema = _schema(wanted, there)
        if schema is not None and there.earlier is not None:
            refused.append(
                f"schema {name}: this is its version {there.earlier} already, and a later one is the latest;"
                " a registry does not go back: delete the later versions, or change the file"
            )
            continue
        level = None if there.level == wanted.level else (there.level, wanted.level)
        if schema is not None or level is not None:
            changes.append(SubjectChange(name, "change", schema, level))
    return changes, refused


def _schema(wanted: Subject, there: PresentSubject) -> tuple[Schema | None, Schema | None] | None:
    if wanted.schema is None or wanted.schema.says_the_same_as(there.schema):
        return None
    return there.schema, wanted.schema


def connector_changes(document: Document, present: Present) -> tuple[list[ConnectorChange], list[str]]:
    changes: list[ConnectorChange] = []
    refused: list[str] = []
    for name, wanted in sorted(document.connectors.items()):
        there = present.connectors.get(name)
        hidden = sorted(
            key for key, value in wanted.items() if value == HIDDEN and (there or {}).get(key) != HIDDEN
        )
        if hidden:
            refused.append(
                f"connector {name}: {hidden[0]} is {HIDDEN}, and the worker has no value of it: name a file"
                " on the worker, as in ${file:/run/secrets/db.properties:password}"
            )
            continue
        changed = {
            key: ((there or {}).get(key), wanted.get(key))
            for key in {**(there or {}), **wanted}
            if (there or {}).get(key) != wanted.get(key)
        }
        if there is None or changed:
            changes.append(ConnectorChange(name, "create" if there is None else "change", wanted, changed))
    return changes, refused


def unnamed_subjects(document: Document, present: Present) -> list[SubjectChange]:
    """What would be deleted of what the file owns and does not name."""
    return [
        SubjectChange(name, "delete", (there.schema, None), _gone(there.level))
        for name, there in sorted(present.subjects.items())
        if name not in document.schemas and document.owns.subject(name)
    ]


def unnamed_connectors(document: Document, present: Present) -> list[ConnectorChange]:
    return [
        ConnectorChange(name, "delete", {}, _all_gone(there))
        for name, there in sorted(present.connectors.items())
        if name not in document.connectors and document.owns.connector(name)
    ]


def _gone(level: str | None) -> tuple[str | None, str | None] | None:
    return None if level is None else (level, None)


def _all_gone(settings: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
    return {name: (value, None) for name, value in settings.items()}
