"""What a connector can be told: each setting declared once, for validation, for answers and for documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from headrace.core.errors import HeadraceError


class BadSetting(HeadraceError):
    """What is wrong with one value, in words for whoever wrote it."""


class Kind(Enum):
    """Named as Kafka Connect names them in its answers."""

    STRING = "STRING"
    INT = "INT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"
    """A secret: never in an answer, never in a log. Say `${file:/path:key}` instead of the secret itself."""


class Importance(Enum):
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class _Required(Enum):
    REQUIRED = "required"


REQUIRED: Final = _Required.REQUIRED
"""As a default: there is none, so the setting has to be given."""

_LIMITS: Final = {Kind.INT: 2**31, Kind.LONG: 2**63}
Check = Callable[[Any], None]


@dataclass(frozen=True)
class Setting:
    name: str
    kind: Kind = Kind.STRING
    default: Any = REQUIRED
    """Of the kind's own type: 5, True, ("a", "b"). None: nothing is said, which is allowed."""
    doc: str = ""
    importance: Importance = Importance.MEDIUM
    one_of: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    check: Check | None = None
    """Raises BadSetting. For what the fields above cannot say."""
    group: str | None = None
    display: str | None = None

    @property
    def is_required(self) -> bool:
        return self.default is REQUIRED

    @property
    def is_secret(self) -> bool:
        return self.kind is Kind.PASSWORD

    def parse(self, text: str | None) -> Any:
        """Raises BadSetting. A text that is not given is the default."""
        if text is None:
            if self.default is REQUIRED:
                raise BadSetting(f'Missing required configuration "{self.name}" which has no default value.')
            return self.default
        value = self._typed(text)
        for each in value if self.kind is Kind.LIST else (value,):
            self._check_bounds(each)
        if self.check is not None:
            self.check(value)
        return value

    def _check_bounds(self, value: Any) -> None:
        if self.one_of and value not in self.one_of:
            raise self._bad(value, f"String must be one of: {', '.join(self.one_of)}")
        if self.least is not None and value < self.least:
            raise self._bad(value, f"Value must be at least {_plain(self.least)}")
        if self.most is not None and value > self.most:
            raise self._bad(value, f"Value must be no more than {_plain(self.most)}")

    def _typed(self, text: str) -> Any:
        stripped = text.strip()
        if self.kind is Kind.BOOLEAN:
            if stripped.lower() in ("true", "false"):
                return stripped.lower() == "true"
            raise self._bad(text, "Expected value to be either true or false")
        if self.kind in _LIMITS:
            return self._whole(stripped)
        if self.kind is Kind.DOUBLE:
            try:
                return float(stripped)
            except ValueError:
                raise self._bad(text, "Not a number of type DOUBLE") from None
        if self.kind is Kind.LIST:
            return tuple(part for each in stripped.split(",") if (part := each.strip()))
        return text if self.kind is Kind.PASSWORD else stripped

    def _whole(self, text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        limit = _LIMITS[self.kind]
        if number is None or not -limit <= number < limit:
            raise self._bad(text, f"Not a number of type {self.kind.value}")
        return number

    def _bad(self, value: object, why: str) -> BadSetting:
        shown = "[hidden]" if self.is_secret else value
        return BadSetting(f"Invalid value {shown} for configuration {self.name}: {why}")


class Settings:
    """The settings of one kind of connector, in the order in which people are shown them."""

    def __init__(self, *settings: Setting) -> None:
        self._by_name: Final = {each.name: each for each in settings}
        if len(self._by_name) != len(settings):
            raise ValueError("a setting is declared twice")

    def __iter__(self) -> Iterator[Setting]:
        return iter(self._by_name.values())

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Setting:
        return self._by_name[name]

    def __add__(self, others: Settings) -> Settings:
        """Of a name that both have, the other one's counts."""
        replaced = [others._by_name.get(each.name, each) for each in self]
        return Settings(*replaced, *(each for each in others if each.name not in self))

    def parse(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Every setting with its value. Raises BadSetting with the first that is wrong."""
        return {each.name: each.parse(given.get(each.name)) for each in self}

    def secrets(self) -> frozenset[str]:
        return frozenset(each.name for each in self if each.is_secret)


def names_of(settings: Iterable[Setting]) -> list[str]:
    return [each.name for each in settings]


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)
