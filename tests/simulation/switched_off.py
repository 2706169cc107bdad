"""Safeguards by name, so that each can be switched off to prove that its absence is seen."""

from __future__ import annotations

from dataclasses import fields, replace

from headrace.controller.safeguards import ALL_ON as CONTROLLER_ALL_ON
from headrace.controller.safeguards import ControllerSafeguards
from headrace.replication.safeguards import ALL_ON, Safeguards


def safeguard_names() -> list[str]:
    return [field.name for field in (*fields(Safeguards), *fields(ControllerSafeguards))]


def switched_off(names: str | None) -> tuple[Safeguards, ControllerSafeguards]:
    """Everything on, but for this one, or for several with `+` between them."""
    off = dict.fromkeys([] if names is None else names.split("+"), False)
    unknown = off.keys() - set(safeguard_names())
    if unknown:
        raise ValueError(f"no safeguard is called {unknown.pop()}; there are {', '.join(safeguard_names())}")
    ours = {field.name for field in fields(Safeguards)}
    return (
        replace(ALL_ON, **{name: False for name in off if name in ours}),
        replace(CONTROLLER_ALL_ON, **{name: False for name in off if name not in ours}),
    )
