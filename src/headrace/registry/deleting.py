"""Deleting: first softly, so that what was written can still be read, then for good."""

from __future__ import annotations

from headrace.registry import errors, settings
from headrace.registry.decision import Decision
from headrace.registry.records import (
    CONFIG,
    DELETE_SUBJECT,
    MODE,
    Entry,
    NoopKey,
    SchemaKey,
    SchemaValue,
    SubjectKey,
)
from headrace.registry.state import HIGHEST_ID, State


def delete_version(state: State, subject: str, version: int, *, permanent: bool) -> Decision[int]:
    settings.must_be_writable(state, subject)
    entry = state.version(subject, version, deleted=version > 0)
    if state.referrers(subject, entry.version):
        raise errors.referenced(subject, entry.version)
    key = SchemaKey(subject, entry.version)
    if not permanent:
        if entry.deleted:
            raise errors.version_soft_deleted(subject, entry.version)
        records = [Entry(key, SchemaValue(entry.id, entry.content, deleted=True))]
        if len(state.versions(subject)) == 1:
            records += _settings_of(state, subject)
        return Decision(records, entry.version)
    if not entry.deleted:
        raise errors.version_not_soft_deleted(subject, entry.version)
    return Decision([Entry(key, None), highest_id(state)], entry.version)


def delete_subject(state: State, subject: str, *, permanent: bool) -> Decision[list[int]]:
    """The versions that were there."""
    settings.must_be_writable(state, subject)
    everything = state.versions(subject, deleted=True)
    living = state.versions(subject)
    if not everything:
        raise errors.subject_not_found(subject)
    for entry in everything if permanent else living:
        if state.referrers(subject, entry.version):
            raise errors.referenced(subject, entry.version)
    if not permanent:
        if not living:
            raise errors.subject_soft_deleted(subject)
        last = living[-1].version
        end = Entry(SubjectKey(DELETE_SUBJECT, subject), {"subject": subject, "version": last})
        return Decision([end, *_settings_of(state, subject)], [entry.version for entry in living])
    if living:
        raise errors.subject_not_soft_deleted(subject)
    records = [Entry(SchemaKey(subject, entry.version), None) for entry in everything]
    return Decision([*records, highest_id(state)], [entry.version for entry in everything])


def highest_id(state: State) -> Entry:
    """Compaction takes away schemas that are gone for good, and with them the memory of their ids."""
    return Entry(NoopKey(), {HIGHEST_ID: state.highest_id})


def _settings_of(state: State, subject: str) -> list[Entry]:
    """What was set for a subject ends with it."""
    return [
        Entry(SubjectKey(kind, subject), None)
        for kind in (CONFIG, MODE)
        if state.setting(kind, subject) is not None
    ]
