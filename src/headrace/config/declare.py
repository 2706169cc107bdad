"""Short forms for declarations. Each gives a `Property` whose type the type checker knows."""

from __future__ import annotations

from typing import Any

from headrace.config.property import Property
from headrace.config.secret import Secret
from headrace.config.values import ConfigType


def boolean(name: str, default: bool, prose: str, **rest: Any) -> Property[bool]:
    return Property(name, ConfigType.BOOLEAN, default, prose, **rest)


def int32(name: str, default: int, prose: str, **rest: Any) -> Property[int]:
    return Property(name, ConfigType.INT, default, prose, **rest)


def int64(name: str, default: int, prose: str, **rest: Any) -> Property[int]:
    return Property(name, ConfigType.LONG, default, prose, **rest)


def int16(name: str, default: int, prose: str, **rest: Any) -> Property[int]:
    return Property(name, ConfigType.SHORT, default, prose, **rest)


def optional_int32(name: str, prose: str, **rest: Any) -> Property[int | None]:
    return Property(name, ConfigType.INT, None, prose, **rest)


def optional_int64(name: str, prose: str, **rest: Any) -> Property[int | None]:
    return Property(name, ConfigType.LONG, None, prose, **rest)


def real(name: str, default: float, prose: str, **rest: Any) -> Property[float]:
    return Property(name, ConfigType.DOUBLE, default, prose, **rest)


def text(name: str, default: str, prose: str, **rest: Any) -> Property[str]:
    return Property(name, ConfigType.STRING, default, prose, **rest)


def optional_text(name: str, prose: str, **rest: Any) -> Property[str | None]:
    return Property(name, ConfigType.STRING, None, prose, **rest)


def names(name: str, default: tuple[str, ...], prose: str, **rest: Any) -> Property[tuple[str, ...]]:
    return Property(name, ConfigType.LIST, default, prose, **rest)


def optional_names(name: str, prose: str, **rest: Any) -> Property[tuple[str, ...] | None]:
    return Property(name, ConfigType.LIST, None, prose, **rest)


def optional_secret(name: str, prose: str, **rest: Any) -> Property[Secret | None]:
    return Property(name, ConfigType.PASSWORD, None, prose, **rest)
