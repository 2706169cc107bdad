"""What every page gets, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from headrace.observe.history import History
from headrace.observe.snapshot import Snapshot

T = TypeVar("T")
Query = Mapping[str, str]

PER_PAGE: Final = 100


class NotThere(Exception):
    """What was asked for does not exist, or the viewer may not see it: both look the same."""


class Scene(NamedTuple):
    """What a page may know. `snapshot` has what the viewer may see, and nothing else."""

    snapshot: Snapshot
    history: History
    query: Query


class Page(NamedTuple):
    template: str
    title: str
    here: str
    """Which entry of the menu is marked."""
    view: Any
    """A named tuple: for the template, and for JSON."""


class Listing(NamedTuple, Generic[T]):
    rows: Sequence[T]
    found: int
    whole: int
    """How many there are without a filter."""
    number: int
    pages: int
    sort: str
    is_descending: bool
    filter: str


def listing(
    items: Sequence[T],
    query: Query,
    keys: Mapping[str, Callable[[T], Any]],
    default: str,
    name: Callable[[T], str],
) -> Listing[T]:
    """One page of what is asked for: `q` is a part of the name, `sort` a column, with `-` downwards."""
    wanted = query.get("q", "").strip()
    chosen = [item for item in items if _matches(name(item), wanted)] if wanted else list(items)
    asked = query.get("sort", default)
    sort, is_descending = asked.removeprefix("-"), asked.startswith("-")
    if sort not in keys:
        sort, is_descending = default.removeprefix("-"), default.startswith("-")
    key = keys[sort]
    known = [item for item in chosen if key(item) is not None]
    unknown = [item for item in chosen if key(item) is None]  # last, whichever way
    known.sort(key=key, reverse=is_descending)
    every = known + unknown
    pages = max(1, -(-len(every) // PER_PAGE))
    number = min(number_in(query, "page", 1, least=1), pages)
    rows = every[(number - 1) * PER_PAGE : number * PER_PAGE]
    return Listing(rows, len(every), len(items), number, pages, sort, is_descending, wanted)


def _matches(name: str, wanted: str) -> bool:
    if wanted.endswith("*"):
        return name.startswith(wanted[:-1])
    return wanted.lower() in name.lower()


def number_in(query: Query, name: str, default: int, *, least: int = 0, most: int = 2**62) -> int:
    """Strangers write addresses: what is no number there is the default."""
    text = query.get(name, "")
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        return default
    return min(max(int(text), least), most)
