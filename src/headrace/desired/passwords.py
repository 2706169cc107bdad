"""Passwords for the users of a plan, from where the file says they are. Only what is needed is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headrace.config.secret import Secret
from headrace.desired.changes import UserChange
from headrace.desired.document import PasswordSource
from headrace.desired.plan import Plan

_LONGEST: Final = 1024


def read_passwords(
    plan: Plan, environment: Mapping[str, str], directory: Path
) -> tuple[dict[str, Secret], list[str]]:
    """By user; and why some are not there. Paths begin at `directory`, where the plan's file is."""
    found: dict[str, Secret] = {}
    lacking: list[str] = []
    for change in plan.changes:
        if isinstance(change, UserChange) and change.password is not None:
            try:
                found[change.name] = _read(change.password, environment, directory)
            except (ValueError, OSError) as error:
                reason = error.strerror if isinstance(error, OSError) else str(error)
                lacking.append(f"user {change.name}: the password {change.password}: {reason}")
    return found, lacking


def _read(source: PasswordSource, environment: Mapping[str, str], directory: Path) -> Secret:
    """Raises ValueError or OSError; neither tells what was read."""
    if source.kind == "env":
        if source.name not in environment:
            raise ValueError("there is no such variable")
        text = environment[source.name]
    else:
        content = (directory / source.name).read_bytes()[: _LONGEST * 4]
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise ValueError("this is not UTF-8") from None
        text = text.removesuffix("\n").removesuffix("\r")
        if "\n" in text:
            raise ValueError("a password is one line")
    if not text:
        raise ValueError("it is empty")
    if len(text) > _LONGEST:
        raise ValueError(f"it has more than {_LONGEST} characters")
    return Secret(text)
