"""Values out of one section of a TOML document, each checked for what it should be."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from headrace.spark.lake import quantities
from headrace.spark.lake.toml_lines import Path


class Wrong(Exception):
    """`path` is the key; whoever knows the file adds the line."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(f"{named(path)}: {text}")
        self.path = path


def named(path: Path) -> str:
    """lake.format, topics[1].schema"""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


class Section:
    """Remembers which keys were asked for, so that `end` can refuse the others."""

    def __init__(self, document: dict[str, object], name: str, number: int | None = None) -> None:
        self.path: Path = (name,) if number is None else (name, number)
        found = document.get(name, {})
        if not isinstance(found, dict):
            raise Wrong(self.path, f"is not a section; write [{name}] on a line of its own")
        self._values: dict[str, object] = found
        self._known: list[str] = []

    def _get(self, key: str) -> object:
        self._known.append(key)
        return self._values.get(key)

    def _wrong(self, key: str, text: str) -> Wrong:
        return Wrong((*self.path, key), text)

    def texts(self) -> dict[str, str]:
        """All keys as they are; nested tables were dotted names that nobody quoted."""
        found: dict[str, str] = {}
        for key, value in self._values.items():
            _flatten(found, key, value)
        return found

    def text(self, key: str) -> str | None:
        value = self._get(key)
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise self._wrong(key, f'{value!r} is not text; write {key} = "..."')
        return value

    def names(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty where the key is not there."""
        value = self._get(key)
        if value is None:
            return ()
        if not (isinstance(value, list) and value and all(isinstance(each, str) and each for each in value)):
            raise self._wrong(key, f'{value!r} is not a list of texts; write {key} = ["...", "..."]')
        return tuple(value)

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        value = self.text(key)
        if value is None:
            return default
        if value not in choices:
            close = difflib.get_close_matches(value, choices, 1)
            meant = f"did you mean {close[0]}?" if close else f"write one of {', '.join(choices)}"
            raise self._wrong(key, f"{value!r} is not known; {meant}")
        return value

    def count(self, key: str) -> int | None:
        value = self._get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise self._wrong(key, f"{value!r} is not a number above 0")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self._get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._wrong(key, f"{value!r} is neither true nor false")
        return value

    def seconds(self, key: str, default: float) -> float:
        value = self._get(key)
        if value is None:
            return default
        found = quantities.seconds(value) if isinstance(value, str) else None
        if found is None:
            raise self._wrong(key, f'{value!r} is not a duration; write for instance "30s", "1h30m" or "7d"')
        return found

    def size(self, key: str, default: int) -> int:
        value = self._get(key)
        if value is None:
            return default
        found = quantities.byte_count(str(value)) if isinstance(value, str | int) else None
        if not found:
            raise self._wrong(key, f'{value!r} is not a size; write for instance "64MB"')
        return found

    def end(self) -> None:
        for key in self._values:
            if key not in self._known:
                close = difflib.get_close_matches(key, self._known, 1)
                meant = (
                    f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(self._known))}"
                )
                raise self._wrong(key, f"unknown key; {meant}")


def _flatten(found: dict[str, str], key: str, value: object) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _flatten(found, f"{key}.{name}", inner)
    else:
        found[key] = str(value).lower() if isinstance(value, bool) else str(value)
