"""Safeguards by name, so that each can be switched off to prove that its absence is seen."""

from __future__ import annotations

from dataclasses import fields, replace

from headrace.controller.safeguards import ALL_ON as CONTROLLER_ALL_ON
from headrace.controller.safeguards import ControllerSafeguards
from headrace.log.wholeness import ALL_ON as WHOLENESS_ALL_ON
from headrace.log.wholeness import Wholeness
from headrace.replication.safeguards import ALL_ON, Safeguards

_OF_FILES = ("doubtful_compared",)
"""Safeguards of replication that only damaged files put to the test."""


def safeguard_names() -> list[str]:
    names = [field.name for field in (*fields(Safeguards), *fields(ControllerSafeguards))]
    return [name for name in names if name not in _OF_FILES]


def damage_safeguard_names() -> list[str]:
    """Those that only damaged files put to the test."""
    return [*(field.name for field in fields(Wholeness)), *_OF_FILES]


def switched_off(names: str | None) -> tuple[Safeguards, ControllerSafeguards, Wholeness]:
    """Everything on, but for this one, or for several with `+` between them."""
    off = dict.fromkeys([] if names is None else names.split("+"), False)
    known = [*safeguard_names(), *damage_safeguard_names()]
    unknown = off.keys() - set(known)
    if unknown:
        raise ValueError(f"no safeguard is called {unknown.pop()}; there are {', '.join(known)}")

    def among(kind: type[Safeguards | ControllerSafeguards | Wholeness]) -> dict[str, bool]:
        return {field.name: False for field in fields(kind) if field.name in off}

    return (
        replace(ALL_ON, **among(Safeguards)),
        replace(CONTROLLER_ALL_ON, **among(ControllerSafeguards)),
        replace(WHOLENESS_ALL_ON, **among(Wholeness)),
    )
