"""Schemas: the subjects of a registry, what their versions say, and what has changed between two."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from headrace.console.pages.differences import Line, differences
from headrace.console.pages.page import Listing, NotThere, Page, Query, listing, number_in
from headrace.console.pages.standing import Standing
from headrace.console.records.texts import parsed_json
from headrace.console.services.registry import RegistrySeen, Subject, Version

MOST: Final = 200
LONGEST: Final = 256 * 1024
"""Characters of a schema that is shown whole, and compared."""
TYPES: Final = {"AVRO": "Avro", "JSON": "JSON Schema", "PROTOBUF": "Protobuf"}


class Level(NamedTuple):
    """Of compatibility."""

    name: str
    """Empty where it is not known."""
    is_own: bool


class SubjectRow(NamedTuple):
    name: str
    type: str
    versions: int
    """Without deleted ones."""
    deleted: int
    latest: int
    schema_id: int
    level: str
    is_own_level: bool
    references: int
    referrers: int


class SchemasView(NamedTuple):
    standing: Standing
    listing: Listing[SubjectRow] | None
    level: str
    mode: str
    has_more: bool


class ReferenceRow(NamedTuple):
    name: str
    subject: str
    version: int
    is_there: bool


class VersionRow(NamedTuple):
    number: int
    id: int
    type: str
    is_deleted: bool


class SubjectView(NamedTuple):
    standing: Standing
    name: str
    level: Level
    versions: Sequence[VersionRow]
    """The newest first."""
    more_versions: int
    chosen: VersionRow
    text: str
    text_length: int
    references: Sequence[ReferenceRow]
    referrers: Sequence[VersionRow]
    referrer_names: Sequence[str]
    against: int
    """The version that it is compared with; 0: none."""
    changes: Sequence[Line]
    is_too_long: bool
    """To be compared."""


KEYS: Final = {
    name: attrgetter(field)
    for name, field in (
        ("name", "name"),
        ("type", "type"),
        ("versions", "versions"),
        ("id", "schema_id"),
        ("level", "level"),
        ("used", "referrers"),
    )
}


def schemas(standing: Standing, seen: RegistrySeen | None, query: Query) -> Page:
    if seen is None or not standing.is_known:
        return Page("schemas.html", "Schemas", "schemas", SchemasView(standing, None, "", "", False))
    used = Counter(
        subject
        for each in seen.subjects.values()
        for subject in {reference.subject for version in each.versions for reference in version.references}
    )
    rows = [_row(seen, each, used[name]) for name, each in seen.subjects.items()]
    page = listing(rows, query, KEYS, "name", attrgetter("name"))
    view = SchemasView(standing, page, seen.level or "", seen.mode or "", seen.has_more)
    return Page("schemas.html", "Schemas", "schemas", view)


def _row(seen: RegistrySeen, subject: Subject, referrers: int) -> SubjectRow:
    live = [each for each in subject.versions if not each.is_deleted]
    last = (live or subject.versions)[-1]
    level = _level(seen, subject)
    return SubjectRow(
        subject.name,
        TYPES.get(last.type, last.type),
        len(live),
        len(subject.versions) - len(live),
        last.number,
        last.id,
        level.name,
        level.is_own,
        len(last.references),
        referrers,
    )


def _level(seen: RegistrySeen, subject: Subject) -> Level:
    if subject.level is None:
        return Level("", False)
    return Level(subject.level, True) if subject.level else Level(seen.level or "", False)


def subject(standing: Standing, seen: RegistrySeen, name: str, query: Query) -> Page:
    """Raises NotThere."""
    found = seen.subjects.get(name)
    if found is None:
        raise NotThere(f"There is no subject {name}, or you may not see it.")
    live = [each for each in found.versions if not each.is_deleted]
    chosen = seen.version(name, number_in(query, "version", 0)) or (live or found.versions)[-1]
    earlier = [each for each in found.versions if each.number < chosen.number]
    other = seen.version(name, number_in(query, "against", 0)) or (earlier[-1] if earlier else None)
    if other is chosen:
        other = None
    is_too_long = other is not None and max(len(chosen.text), len(other.text)) > LONGEST
    text = _shown(chosen)
    changes: list[Line] = []
    if other is not None and not is_too_long:
        changes = differences(_shown(other).splitlines(), text.splitlines())
    referrers = seen.referrers(name)[:MOST]
    view = SubjectView(
        standing,
        name,
        _level(seen, found),
        [_version_row(each) for each in found.versions[::-1][:MOST]],
        max(0, len(found.versions) - MOST),
        _version_row(chosen),
        text[:LONGEST],
        len(text),
        [
            ReferenceRow(each.name, each.subject, each.version, seen.version(*each[1:]) is not None)
            for each in chosen.references
        ],
        [_version_row(each) for each in referrers],
        [each.subject for each in referrers],
        0 if other is None else other.number,
        changes,
        is_too_long,
    )
    return Page("schema.html", name, "schemas", view)


def _version_row(version: Version) -> VersionRow:
    return VersionRow(version.number, version.id, TYPES.get(version.type, version.type), version.is_deleted)


def _shown(version: Version) -> str:
    """JSON with a line for each member. What is long, or nested deeply, is left as it is."""
    if version.type == "PROTOBUF" or len(version.text) > LONGEST:
        return version.text
    parsed = parsed_json(version.text)
    return version.text if parsed is None else json.dumps(parsed, indent=2, ensure_ascii=False)
