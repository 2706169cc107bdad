"""Safeguards by name, so that each can be switched off to prove that its absence is seen."""

from __future__ import annotations

from dataclasses import fields, replace

from headrace.controller.safeguards import ALL_ON as CONTROLLER_ALL_ON
from headrace.controller.safeguards import ControllerSafeguards
from headrace.replication.safeguards import ALL_ON, Safeguards


def safeguard_names() -> list[str]:
    return [field.name for field in (*fields(Safeguards), *fields(ControllerSafeguards))]


def switched_off(name: str | None) -> tuple[Safeguards, ControllerSafeguards]:
    """Everything on, but for this one."""
    if name is None:
        return ALL_ON, CONTROLLER_ALL_ON
    if any(field.name == name for field in fields(Safeguards)):
        return replace(ALL_ON, **{name: False}), CONTROLLER_ALL_ON
    if any(field.name == name for field in fields(ControllerSafeguards)):
        return ALL_ON, replace(CONTROLLER_ALL_ON, **{name: False})
    raise ValueError(f"no safeguard is called {name}; there are {', '.join(safeguard_names())}")
