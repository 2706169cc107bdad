"""Registering a schema, looking one up, asking whether one would be taken. The state stays as it is."""

from __future__ import annotations

import dataclasses
import unicodedata
from typing import NamedTuple

from headrace.registry import errors, settings
from headrace.registry.content import Content, Reference
from headrace.registry.decision import Decision
from headrace.registry.formats import Formats
from headrace.registry.levels import objections
from headrace.registry.parsed import Parsed
from headrace.registry.records import Entry, SchemaKey, SchemaValue
from headrace.registry.state import LATEST, Registered, State

_MAX_INT = 2**31 - 1
_GLOBAL_NAMES = ("__GLOBAL", "__EMPTY")
"""Names that Confluent's registry keeps for itself."""


class Submission(NamedTuple):
    content: Content
    normalize: bool = False
    id: int | None = None
    version: int | None = None
    """Both are only for the import of another registry's schemas."""


def check_subject(subject: str) -> None:
    if (
        not subject.strip()
        or subject in _GLOBAL_NAMES
        or any(unicodedata.category(c) == "Cc" for c in subject)
    ):
        raise errors.invalid_subject(subject)


def version_number(text: str) -> int:
    """Of a path: a number, 'latest' or -1."""
    if text in ("latest", "-1"):
        return LATEST
    try:
        number = int(text)
    except ValueError:
        raise errors.invalid_version(text) from None
    if not 1 <= number <= _MAX_INT:
        raise errors.invalid_version(text)
    return number


def register(state: State, formats: Formats, subject: str, submission: Submission) -> Decision[Registered]:
    """A new version of the subject, unless it is there already."""
    check_subject(subject)
    parsed, content = _understood(state, formats, subject, submission)
    known = find(state, formats, subject, parsed, content)
    if known is None and settings.mode_of(state, subject) != settings.IMPORT:
        content = _inheriting(state, subject, content)
        known = find(state, formats, subject, parsed, content)
    if known is not None and submission.id in (None, known.id):
        # Whatever the mode is: serialisers register what is there, and nothing is written.
        return Decision([], known)
    _check_mode(state, subject, submission)
    if submission.id is None:
        earlier = [(entry.version, formats.parse(state, entry.content)) for entry in state.versions(subject)]
        reasons = objections(settings.level_of(state, subject), parsed, earlier)
        if reasons:
            raise errors.incompatible(subject, reasons)
    number = _id_for(state, formats, subject, parsed, content, submission)
    version = _version_for(state, subject, submission)
    return Decision(
        [Entry(SchemaKey(subject, version), SchemaValue(number, content))],
        Registered(subject, version, number, content, False),
    )


def look_up(
    state: State, formats: Formats, subject: str, submission: Submission, *, deleted: bool = False
) -> Registered:
    """Under which version and id the subject has this schema."""
    check_subject(subject)
    if not state.versions(subject, deleted=deleted):
        raise errors.subject_not_found(subject)
    parsed, content = _understood(state, formats, subject, submission)
    for each in (content, _inheriting(state, subject, content)):
        known = find(state, formats, subject, parsed, each, deleted=deleted)
        if known is not None:
            return known
    raise errors.schema_not_found()


def compatibility(
    state: State, formats: Formats, subject: str, submission: Submission, version: int | None
) -> list[str]:
    """Why the schema would not be taken, against one version, or all that the level asks for (None)."""
    check_subject(subject)
    earlier = state.versions(subject)
    if version == LATEST:
        earlier = earlier[-1:]
    elif version is not None:
        earlier = [entry for entry in earlier if entry.version == version]
        if not earlier:
            raise errors.version_not_found(version)
    parsed, _ = _understood(state, formats, subject, submission)
    previous = [(entry.version, formats.parse(state, entry.content)) for entry in earlier]
    return objections(settings.level_of(state, subject), parsed, previous)


def find(
    state: State, formats: Formats, subject: str, parsed: Parsed, content: Content, *, deleted: bool = False
) -> Registered | None:
    """The newest version of the subject that is this schema, in whatever spelling."""
    for entry in reversed(state.versions(subject, deleted=deleted)):
        if entry.content.type is not content.type or entry.content.extras != content.extras:
            continue
        if sorted(entry.content.references) != sorted(content.references):
            continue
        if entry.content == content or formats.parse(state, entry.content).identity == parsed.identity:
            return entry
    return None


def _understood(
    state: State, formats: Formats, subject: str, submission: Submission
) -> tuple[Parsed, Content]:
    """The schema, and its content as it would be stored."""
    references = tuple(_settled(state, reference) for reference in submission.content.references)
    given = dataclasses.replace(submission.content, references=references)
    parsed = formats.parse(state, given)
    text = parsed.text
    if submission.normalize or settings.normalizes(state, subject):
        text = parsed.normalized
        references = tuple(sorted(references))
    return parsed, dataclasses.replace(given, text=text, references=references)


def _inheriting(state: State, subject: str, content: Content) -> Content:
    """Serialisers send a schema without rules and metadata. A subject's must not end with it."""
    living = state.versions(subject)
    return content.inheriting(living[-1].content) if living else content


def _settled(state: State, reference: Reference) -> Reference:
    """With the number of a version: what is stored must mean the same when a newer one is the latest.

    Only of what is sent. What other registries have stored is read as it is.
    """
    version = reference.version
    if version == LATEST:
        living = state.versions(reference.subject)
        if not living:
            raise errors.invalid_schema(f'No schema reference found for subject "{reference.subject}"')
        return reference._replace(version=living[-1].version)
    if isinstance(version, bool) or not 1 <= version <= _MAX_INT:
        raise errors.invalid_schema(f"a reference has the number of a version, or -1, not {version!r}")
    return reference


def _check_mode(state: State, subject: str, submission: Submission) -> None:
    if submission.id is not None and submission.id > _MAX_INT:
        raise errors.unprocessable(f"An id is at most {_MAX_INT}, not {submission.id}: records hold 32 bits")
    settings.must_be_writable(state, subject)
    mode = settings.mode_of(state, subject)
    if submission.id is not None and mode != settings.IMPORT:
        raise errors.not_permitted(f"Subject {subject} is not in import mode")
    if submission.id is None and mode == settings.IMPORT:
        raise errors.not_permitted(f"Subject {subject} is in import mode: schemas come with their ids")


def _id_for(
    state: State, formats: Formats, subject: str, parsed: Parsed, content: Content, submission: Submission
) -> int:
    if submission.id is not None:
        uses = state.uses(submission.id, deleted=True)
        if uses and formats.parse(state, uses[0].content).identity != parsed.identity:
            raise errors.not_permitted(f"Overwrite new schema with id {submission.id} is not permitted.")
        return submission.id
    # A schema that was deleted from the subject comes back under its old id: records with that id are about.
    gone = find(state, formats, subject, parsed, content, deleted=True)
    if gone is not None:
        return gone.id
    known = state.id_of(content)
    return state.highest_id + 1 if known is None else known


def _version_for(state: State, subject: str, submission: Submission) -> int:
    following = state.next_version(subject)
    if submission.version is None or submission.version < 1:
        return following
    if submission.version > _MAX_INT:
        raise errors.invalid_version(submission.version)
    if submission.id is None and submission.version != following:
        raise errors.unprocessable(f"Version is {submission.version}, the next one would be {following}")
    return submission.version
