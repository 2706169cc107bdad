"""What a schema registry has: subjects, their versions, what each refers to, and which level of compatibility
holds. Headrace's registry and Confluent's tell it in the same words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.client.rest import RestRefused, in_path
from headrace.console.services.following import Asker
from headrace.registry.content import Reference

MOST_VERSIONS: Final = 20_000
"""That are kept, and shown. A registry with more is said to have more."""
MOST_TEXT: Final = 64 * 1024 * 1024
"""Characters of all schemas together."""
LEVELS_AT_ONCE: Final = 200
"""Subjects whose own level a look asks for, since each is a question of its own."""
_PAGE: Final = 500
_NOT_FOUND: Final = 404


class Version(NamedTuple):
    subject: str
    number: int
    id: int
    type: str
    text: str
    references: Sequence[Reference]
    is_deleted: bool
    """It is in no list, but records that were written with it are still there."""


class Subject(NamedTuple):
    name: str
    versions: Sequence[Version]
    """The oldest first."""
    level: str | None
    """Its own; empty where that of the registry holds; None where it has not been told yet."""


class RegistrySeen(NamedTuple):
    subjects: Mapping[str, Subject]
    by_id: Mapping[int, Sequence[Version]]
    level: str | None
    """Of all subjects without one of their own; None where it is not told."""
    mode: str | None
    has_more: bool

    def limited(self, may_read: Callable[[str], bool]) -> RegistrySeen:
        """To what the registry would tell somebody."""
        subjects = {name: each for name, each in self.subjects.items() if may_read(name)}
        return self._replace(subjects=subjects, by_id=ids_of(subjects))

    def version(self, subject: str, number: int) -> Version | None:
        found = self.subjects.get(subject)
        versions = () if found is None else found.versions
        return next((each for each in versions if each.number == number), None)

    def referrers(self, subject: str) -> list[Version]:
        """What refers to any version of it."""
        return [
            version
            for each in self.subjects.values()
            for version in each.versions
            if any(reference.subject == subject for reference in version.references)
        ]


def ids_of(subjects: Mapping[str, Subject]) -> dict[int, list[Version]]:
    found: dict[int, list[Version]] = {}
    for subject in subjects.values():
        for version in subject.versions:
            found.setdefault(version.id, []).append(version)
    return found


class RegistryLooks:
    """Remembers the levels that earlier looks were told."""

    def __init__(self) -> None:
        self._levels: dict[str, str | None] = {}
        """The one that was asked for longest ago comes first."""
        self._wanted: list[str] = []

    def want(self, subject: str) -> None:
        """Its level is asked for with the next look: somebody has opened its page."""
        if subject not in self._wanted:
            self._wanted = [*self._wanted[-LEVELS_AT_ONCE:], subject]

    def look(self, asker: Asker) -> RegistrySeen:
        """Raises ClientFailure."""
        versions, has_more = _versions(asker)
        by_subject: dict[str, list[Version]] = {}
        for version in versions:
            by_subject.setdefault(version.subject, []).append(version)
        level, mode = _setting(asker, "/config"), _setting(asker, "/mode")
        self._ask_levels(asker, by_subject)
        subjects = {
            name: Subject(name, sorted(found, key=lambda each: each.number), self._levels.get(name))
            for name, found in sorted(by_subject.items())
        }
        return RegistrySeen(subjects, ids_of(subjects), level, mode, has_more)

    def _ask_levels(self, asker: Asker, subjects: Mapping[str, object]) -> None:
        self._levels = {name: level for name, level in self._levels.items() if name in subjects}
        wanted, self._wanted = self._wanted, []
        unknown = [name for name in subjects if name not in self._levels]
        for name in dict.fromkeys([*wanted, *unknown, *self._levels][:LEVELS_AT_ONCE]):
            if name in subjects:
                told = _setting(asker, f"/config/{in_path(name)}")
                self._levels.pop(name, None)
                self._levels[name] = told


def _versions(asker: Asker) -> tuple[list[Version], bool]:
    """All of them, by pages; and whether there are more than are kept."""
    found: dict[tuple[str, int], Version] = {}
    characters = offset = 0
    while True:
        path = f"/schemas?deleted=true&offset={offset}&limit={_PAGE}"
        told = asker.get(path)
        if not isinstance(told, list):
            raise asker.strange(path)
        before = len(found)
        for document in told:
            version = _version(document)
            if version is None:
                raise asker.strange(path)
            found[version.subject, version.number] = version
            characters += len(version.text)
        offset += len(told)
        # Whoever knows no pages sends the same again.
        if len(told) != _PAGE or len(found) == before:
            return list(found.values()), False
        if len(found) >= MOST_VERSIONS or characters >= MOST_TEXT:
            return list(found.values()), True


def _version(document: object) -> Version | None:
    """None where it is no schema."""
    if not isinstance(document, dict):
        return None
    subject, number, text = document.get("subject"), document.get("version"), document.get("schema")
    schema_id, kind = document.get("id"), document.get("schemaType") or "AVRO"
    if not (isinstance(subject, str) and isinstance(number, int) and isinstance(schema_id, int)):
        return None
    if not (isinstance(text, str) and isinstance(kind, str)):
        return None
    references = [_reference(each) for each in document.get("references") or ()]
    if None in references:
        return None
    known = [each for each in references if each is not None]
    return Version(subject, number, schema_id, kind, text, known, bool(document.get("deleted")))


def _reference(document: object) -> Reference | None:
    if not isinstance(document, dict):
        return None
    name, subject, number = document.get("name"), document.get("subject"), document.get("version")
    if isinstance(name, str) and isinstance(subject, str) and isinstance(number, int):
        return Reference(name, subject, number)
    return None


def _setting(asker: Asker, path: str) -> str | None:
    """Empty where there is none; None where that is not told."""
    try:
        told = asker.get(path)
    except RestRefused as error:
        return "" if error.status == _NOT_FOUND else None
    if not isinstance(told, dict):
        raise asker.strange(path)
    found = told.get("mode" if path == "/mode" else "compatibilityLevel")
    return found if isinstance(found, str) else None
