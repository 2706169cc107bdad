"""Which connectors are installed: classes behind entry points of the group `headrace.connectors`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from headrace import __version__
from headrace.connect import common_settings
from headrace.connect.api import Connector, Described, Job, Sink, Source
from headrace.connect.settings import Settings
from headrace.core.errors import HeadraceError

log = logging.getLogger("headrace.connect")

GROUP: Final = "headrace.connectors"
_SETTINGS: Final[dict[type[Connector], Settings]] = {}


class UnknownPlugin(HeadraceError):
    """No class is installed under that name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(
            f"Failed to find any class that implements Connector and which name matches {name}, "
            f"available connectors are: {', '.join(sorted(known))}"
        )


class Plugins:
    def __init__(self, described: Iterable[Described]) -> None:
        self._all: Final = sorted(described, key=lambda each: each.name)
        self._by_name: Final[dict[str, Described]] = {}
        for each in self._all:
            for name in (each.name, each.entry_point, *each.others):
                # The first one keeps a name that two have; its full name always finds a class.
                self._by_name.setdefault(name, each)

    def __iter__(self) -> Iterator[Described]:
        return iter(self._all)

    def find(self, name: str) -> Described:
        """By entry point, class, last part of the class, or another maker's name. Raises UnknownPlugin."""
        found = self._by_name.get(name)
        if found is None:
            raise UnknownPlugin(name, (each.name for each in self._all))
        return found


def described(connector: type[Connector], entry_point: str = "") -> Described:
    name = f"{connector.__module__}.{connector.__qualname__}"
    short = connector.__qualname__
    names = (short, short.removesuffix("Connector"), *connector.aliases)
    shorter = [name for alias in connector.aliases for name in _short_forms(alias)]
    return Described(name, connector, entry_point, tuple(dict.fromkeys((*names, *shorter))))


def installed() -> Plugins:
    """A connector whose module cannot be imported is left out and told of: it must not hide the others."""
    return Plugins(found for point in entry_points(group=GROUP) if (found := _loaded(point)) is not None)


def _loaded(point: EntryPoint) -> Described | None:
    try:
        connector = point.load()
    except Exception as error:
        log.error("a connector cannot be imported", extra={"connector": point.name, "error": repr(error)})
        return None
    if not isinstance(connector, type) or not issubclass(connector, (Source, Sink, Job)):
        log.error("an entry point is no Source, no Sink and no Job", extra={"connector": point.name})
        return None
    return described(connector, point.name)


def all_settings(connector: type[Connector]) -> Settings:
    """Those of every connector, then its own. Asked for with each answer, so they are put together once."""
    found = _SETTINGS.get(connector)
    if found is None:
        found = _SETTINGS[connector] = _put_together(connector)
    return found


def _put_together(connector: type[Connector]) -> Settings:
    return common_of(connector) + connector.settings


def common_of(connector: type[Connector]) -> Settings:
    """Those that it has because of what kind of connector it is."""
    if issubclass(connector, Job):
        return common_settings.JOB
    return common_settings.SINK if issubclass(connector, Sink) else common_settings.SOURCE


def version_of(connector: type[Connector]) -> str:
    return connector.version or __version__


def _short_forms(name: str) -> list[str]:
    last = name.rpartition(".")[2]
    return [last, last.removesuffix("Connector")]
