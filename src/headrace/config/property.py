"""One property of the configuration: everything that is known about it, in one declaration.

A `Property` placed in a class body is a descriptor: the class gives the declaration, an instance gives
the typed value. It has no `__set__`, so an instance that holds the value in its own dictionary reads it
at the price of an ordinary attribute.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

from headrace.config.values import ConfigType, ConfigValue, format_value, parse_value

T_co = TypeVar("T_co", covariant=True)

Check = Callable[[Any], str | None]
"""Gives the complaint about a value, or None. Used where bounds and choices cannot say it."""


class UpdateMode(enum.Enum):
    """How a broker property may change while the broker runs, in the words of Kafka's documentation."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Status(enum.Enum):
    ACTIVE = "active"
    LATER = "later"
    """Accepted, stored and described; the feature that it steers does not exist yet."""


class Property(Generic[T_co]):
    __slots__ = (
        "aliases",
        "allowed",
        "at_least",
        "at_most",
        "attribute",
        "check",
        "default",
        "internal",
        "name",
        "prose",
        "status",
        "synonyms",
        "topic_name",
        "type",
        "update",
    )

    def __init__(
        self,
        name: str,
        type: ConfigType,
        default: ConfigValue,
        prose: str,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        allowed: tuple[str, ...] = (),
        check: Check | None = None,
        update: UpdateMode = UpdateMode.READ_ONLY,
        status: Status = Status.ACTIVE,
        topic_name: str | None = None,
        synonyms: tuple[tuple[str, int], ...] = (),
        aliases: tuple[str, ...] = (),
        internal: bool = False,
    ) -> None:
        self.name = name
        self.attribute = name.replace(".", "_")
        self.type = type
        self.default = default
        self.prose = prose
        self.at_least = at_least
        self.at_most = at_most
        self.allowed = allowed
        self.check = check
        self.update = update
        self.status = status
        # On a broker property: the topic property that overrides it, if there is one.
        self.topic_name = topic_name
        # On a topic property: the broker properties that stand behind it, strongest first, each with the
        # factor that turns its unit into the topic's (hours into milliseconds).
        self.synonyms = synonyms
        # Older or mistaken names that a broker file may use for the same thing.
        self.aliases = aliases
        # Internal properties are described only where they are set, as Kafka has it.
        self.internal = internal

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T_co: ...
    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        raise AttributeError(f"{self.name} has no value in this {owner.__name__}")

    @property
    def sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> Any:
        """The typed value, or ValueError with the complaint in words that name the property."""
        try:
            value = parse_value(self.type, text)
        except ValueError as error:
            raise ValueError(f"{self.name}={self._shown(text)}: {error}") from None
        complaint = self.complaint(value)
        if complaint is not None:
            raise ValueError(f"{self.name}={self._shown(text)}: {complaint}")
        return value

    def complaint(self, value: Any) -> str | None:
        if self.allowed:
            items = value if isinstance(value, tuple) else (value,)
            for item in items:
                if item not in self.allowed:
                    return f"{item!r} is not one of {', '.join(self.allowed)}"
        if self.at_least is not None and value < self.at_least:
            return f"the least is {format_value(self.at_least)}"
        if self.at_most is not None and value > self.at_most:
            return f"the most is {format_value(self.at_most)}"
        return None if self.check is None else self.check(value)

    def _shown(self, text: str) -> str:
        return "(hidden)" if self.sensitive else text

    def default_text(self) -> str | None:
        return None if self.default is None else format_value(self.default)

    def at_broker_level(
        self, name: str, *, update: UpdateMode = UpdateMode.CLUSTER_WIDE, aliases: tuple[str, ...] = ()
    ) -> Property[T_co]:
        """The broker's default for this topic property: the same type, bounds, default and meaning."""
        return Property(
            name,
            self.type,
            self.default,
            self.prose,
            at_least=self.at_least,
            at_most=self.at_most,
            allowed=self.allowed,
            check=self.check,
            update=update,
            status=self.status,
            topic_name=self.name,
            aliases=aliases,
        )

    def __repr__(self) -> str:
        return f"Property({self.name})"
