"""All that the registry knows: the outcome of its records, replayed in order. Only `replay` changes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from headrace.registry import errors
from headrace.registry.content import Content
from headrace.registry.records import (
    CLEAR_SUBJECT,
    CONFIG,
    DELETE_SUBJECT,
    MODE,
    Entry,
    SchemaKey,
    SchemaValue,
    SubjectKey,
)

LATEST = -1
HIGHEST_ID = "highestId"
"""In the value of a NOOP record: ids up to here were given out. Confluent's registry does not look at it."""


class Registered(NamedTuple):
    subject: str
    version: int
    id: int
    content: Content
    deleted: bool

    def document(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "id": self.id,
            "guid": self.content.guid,
            "version": self.version,
            **self.content.document(),
        }


class State:
    def __init__(self) -> None:
        self.highest_id = 0
        """Never goes down, so no id is given to two schemas."""
        self._subjects: dict[str, dict[int, Registered]] = {}
        """Versions that were deleted for good are not in it; a subject without versions is not either."""
        self._uses: dict[int, set[SchemaKey]] = {}
        """Where each id is registered, deleted or not. An id without a use is not known any more."""
        self._ids: dict[Content, int] = {}
        self._referrers: dict[SchemaKey, set[SchemaKey]] = {}
        """Who refers to a version, of those that are not deleted."""
        self._settings: dict[tuple[str, str | None], Mapping[str, Any]] = {}

    # --- replay ---------------------------------------------------------------------------------------

    def replay(self, entry: Entry) -> None:
        key, value = entry
        if isinstance(key, SchemaKey):
            self._forget(key)
            if isinstance(value, SchemaValue):
                self._keep(Registered(*key, value.id, value.content, value.deleted))
        elif isinstance(key, SubjectKey):
            self._replay_subject(key, value if isinstance(value, Mapping) else None)
        elif isinstance(value, Mapping):
            highest = value.get(HIGHEST_ID)
            if isinstance(highest, int):
                self.highest_id = max(self.highest_id, highest)

    def _replay_subject(self, key: SubjectKey, value: Mapping[str, Any] | None) -> None:
        kind, subject = key
        if kind in (CONFIG, MODE):
            if value is None:
                self._settings.pop(key, None)
            else:
                self._settings[key] = value
        elif subject is not None and value is not None:
            last = value.get("version", 2**31)
            for entry in self.versions(subject, deleted=True):
                if kind == DELETE_SUBJECT and entry.version <= last:
                    self._forget(SchemaKey(subject, entry.version))
                    self._keep(entry._replace(deleted=True))
                elif kind == CLEAR_SUBJECT and entry.deleted:
                    self._forget(SchemaKey(subject, entry.version))

    def _keep(self, entry: Registered) -> None:
        key = SchemaKey(entry.subject, entry.version)
        self._subjects.setdefault(entry.subject, {})[entry.version] = entry
        self._uses.setdefault(entry.id, set()).add(key)
        self._ids.setdefault(entry.content, entry.id)
        self.highest_id = max(self.highest_id, entry.id)
        if not entry.deleted:
            for reference in entry.content.references:
                self._referrers.setdefault(SchemaKey(reference.subject, reference.version), set()).add(key)

    def _forget(self, key: SchemaKey) -> None:
        versions = self._subjects.get(key.subject, {})
        entry = versions.pop(key.version, None)
        if entry is None:
            return
        if not versions:
            del self._subjects[key.subject]
        uses = self._uses[entry.id]
        uses.discard(key)
        if not uses:
            del self._uses[entry.id]
            if self._ids.get(entry.content) == entry.id:
                del self._ids[entry.content]
        for reference in entry.content.references:
            self._referrers.get(SchemaKey(reference.subject, reference.version), set()).discard(key)

    # --- subjects and versions ------------------------------------------------------------------------

    def subjects(self, *, deleted: bool = False) -> Iterator[str]:
        """In order. With `deleted`, also those of which every version is."""
        for subject in sorted(self._subjects):
            if deleted or any(not entry.deleted for entry in self._subjects[subject].values()):
                yield subject

    def versions(self, subject: str, *, deleted: bool = False) -> list[Registered]:
        """From the oldest to the newest; none if there is no such subject."""
        entries = sorted(self._subjects.get(subject, {}).values(), key=lambda entry: entry.version)
        return [entry for entry in entries if deleted or not entry.deleted]

    def version(self, subject: str, version: int, *, deleted: bool = False) -> Registered:
        """The version, LATEST for the newest; RegistryError if there is none."""
        entries = self.versions(subject, deleted=deleted)
        if not entries:
            raise errors.subject_not_found(subject)
        if version == LATEST:
            return entries[-1]
        for entry in entries:
            if entry.version == version:
                return entry
        raise errors.version_not_found(version)

    def next_version(self, subject: str) -> int:
        return max(self._subjects.get(subject, {}), default=0) + 1

    # --- ids ------------------------------------------------------------------------------------------

    def content(self, number: int) -> Content:
        for key in self._uses.get(number, ()):
            return self._subjects[key.subject][key.version].content
        raise errors.schema_not_found(number)

    def id_of(self, content: Content) -> int | None:
        return self._ids.get(content)

    def id_of_guid(self, guid: str) -> int:
        for content, number in self._ids.items():
            if content.guid == guid:
                return number
        raise errors.schema_not_found(guid)

    def uses(self, number: int, *, deleted: bool = False) -> list[Registered]:
        entries = [self._subjects[key.subject][key.version] for key in sorted(self._uses.get(number, ()))]
        return [entry for entry in entries if deleted or not entry.deleted]

    # --- references and settings ----------------------------------------------------------------------

    def referrers(self, subject: str, version: int) -> list[Registered]:
        keys: Iterable[SchemaKey] = self._referrers.get(SchemaKey(subject, version), ())
        return [self._subjects[key.subject][key.version] for key in sorted(keys)]

    def setting(self, kind: str, subject: str | None) -> Mapping[str, Any] | None:
        """What was said of this very subject, or globally for None."""
        return self._settings.get((kind, subject))

    def __len__(self) -> int:
        return sum(len(versions) for versions in self._subjects.values())
