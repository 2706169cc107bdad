"""Compatibility and mode of a subject, and the global ones behind them; what a change of them writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headrace.registry import errors
from headrace.registry.decision import Decision
from headrace.registry.levels import DEFAULT, Level
from headrace.registry.records import CONFIG, MODE, Entry, SubjectKey
from headrace.registry.state import State

READWRITE: Final = "READWRITE"
READONLY: Final = "READONLY"
READONLY_OVERRIDE: Final = "READONLY_OVERRIDE"
IMPORT: Final = "IMPORT"
MODES: Final = (READWRITE, READONLY, READONLY_OVERRIDE, IMPORT)


# --- what holds ---------------------------------------------------------------------------------------


def level_of(state: State, subject: str) -> Level:
    for where in (subject, None):
        said = (state.setting(CONFIG, where) or {}).get("compatibilityLevel")
        if isinstance(said, str) and said in Level.__members__:
            return Level(said)
    return DEFAULT


def normalizes(state: State, subject: str) -> bool:
    for where in (subject, None):
        said = (state.setting(CONFIG, where) or {}).get("normalize")
        if said is not None:
            return bool(said)
    return False


def mode_of(state: State, subject: str | None) -> str:
    """A global READONLY_OVERRIDE counts above what a subject says; otherwise the subject counts first."""
    for where in (subject, None):
        overall = (state.setting(MODE, None) or {}).get("mode")
        if overall == READONLY_OVERRIDE:
            return READONLY_OVERRIDE
        said = (state.setting(MODE, where) or {}).get("mode")
        if said in MODES:
            return str(said)
    return READWRITE


def must_be_writable(state: State, subject: str | None) -> None:
    if mode_of(state, subject) in (READONLY, READONLY_OVERRIDE):
        raise errors.not_permitted(f"{_words(subject)} is in read-only mode")


def _words(subject: str | None) -> str:
    return "The registry" if subject is None else f"Subject {subject}"


# --- configuration ------------------------------------------------------------------------------------


def config(state: State, subject: str | None, *, default_to_global: bool = False) -> dict[str, Any]:
    said = state.setting(CONFIG, subject)
    if subject is not None and said is None:
        if not default_to_global:
            raise errors.no_compatibility_of(subject)
        return config(state, None)
    document = {
        name: value for name, value in (said or {}).items() if name != "subject" and value is not None
    }
    if subject is None:
        document.setdefault("compatibilityLevel", DEFAULT.value)
    return document


def put_config(state: State, subject: str | None, request: Mapping[str, Any]) -> Decision[dict[str, Any]]:
    """Changes what the request names, and leaves the rest."""
    unknown = [
        name
        for name, value in request.items()
        if name not in ("compatibility", "normalize") and value is not None
    ]
    if unknown:
        raise errors.unprocessable(f"this registry knows no setting {unknown[0]!r}: compatibility, normalize")
    change: dict[str, Any] = {}
    level = request.get("compatibility")
    if level is not None:
        if not isinstance(level, str) or level.upper() not in Level.__members__:
            raise errors.invalid_level(", ".join(Level.__members__))
        change["compatibilityLevel"] = level.upper()
    if request.get("normalize") is not None:
        change["normalize"] = bool(request["normalize"])
    if not change:
        raise errors.invalid_level(", ".join(Level.__members__))
    must_be_writable(state, subject)
    before = state.setting(CONFIG, subject) or {}
    value = {**({} if subject is None else {"subject": subject}), **before, **change}
    answer = {name: request[name] for name in ("compatibility", "normalize") if request.get(name) is not None}
    if "compatibility" in answer:
        answer["compatibility"] = change["compatibilityLevel"]
    return Decision([Entry(SubjectKey(CONFIG, subject), value)], answer)


def delete_config(state: State, subject: str | None) -> Decision[dict[str, Any]]:
    """Answers what was said until now."""
    must_be_writable(state, subject)
    if subject is not None and state.setting(CONFIG, subject) is None:
        raise errors.subject_not_found(subject)
    before = config(state, subject)
    if state.setting(CONFIG, subject) is None:
        return Decision([], before)
    return Decision([Entry(SubjectKey(CONFIG, subject), None)], before)


# --- mode ---------------------------------------------------------------------------------------------


def mode(state: State, subject: str | None, *, default_to_global: bool = False) -> dict[str, str]:
    if subject is not None and state.setting(MODE, subject) is None and not default_to_global:
        raise errors.no_mode_of(subject)
    return {"mode": mode_of(state, subject)}


def put_mode(
    state: State, subject: str | None, request: Mapping[str, Any], *, force: bool = False
) -> Decision[dict[str, str]]:
    wanted = request.get("mode")
    if not isinstance(wanted, str) or wanted.upper() not in MODES:
        raise errors.invalid_mode(", ".join(MODES))
    wanted = wanted.upper()
    if wanted == IMPORT and mode_of(state, subject) != IMPORT and not force:
        # Ids that are imported must not meet ids that were given out here.
        occupied = state.versions(subject) if subject is not None else list(state.subjects())
        if occupied:
            raise errors.not_permitted(
                f"{_words(subject)} has schemas: delete them before the import mode is set, or set force=true"
            )
    value = {**({} if subject is None else {"subject": subject}), "mode": wanted}
    return Decision([Entry(SubjectKey(MODE, subject), value)], {"mode": wanted})


def delete_mode(state: State, subject: str | None) -> Decision[dict[str, str]]:
    if subject is not None and state.setting(MODE, subject) is None:
        raise errors.subject_not_found(subject)
    before = {"mode": mode_of(state, subject)}
    if state.setting(MODE, subject) is None:
        return Decision([], before)
    return Decision([Entry(SubjectKey(MODE, subject), None)], before)
