"""How far a capture is: the place in the log, and which rows of each table were copied. A value, kept in the
decision of every batch.

The rule that makes the copy and the changes one sequence, without gap and without overlap, is in
`coverage.py`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.connect.postgres.lsn import lsn_of, lsn_text
from headrace.connect.postgres.visibility import Visible, visible_of

Key = tuple[str, ...]
"""The values of a primary key as Postgres prints them."""


@dataclass(frozen=True)
class Range:
    """Rows with keys above `after`, up to and with `to`. None: without bound."""

    after: Key | None
    to: Key | None


@dataclass(frozen=True)
class Fresh:
    """What was copied last. Until the stream of changes has passed `until`, it holds changes that the copied
    rows have already."""

    visible: Visible
    """The transactions that the copy has seen."""
    until: int
    """All of them were committed before this place in the log."""
    ranges: Mapping[str, Range]
    """By table."""


@dataclass(frozen=True)
class Progress:
    system: str
    """Identifies the cluster of databases."""
    lsn: int
    """Transactions whose commit stands before it are done."""
    transaction: int | None = None
    """Where the commit of the transaction stands of which a part is done: it is the first one at or behind
    `lsn`."""
    seen: int = 0
    """How many of its changes are done."""
    copied: Mapping[str, Key | None] = field(default_factory=dict)
    """The tables of which rows up to this key were copied; None: all rows. A table that is not named has not
    been begun."""
    fresh: Fresh | None = None
    identities: Mapping[str, str] = field(default_factory=dict)
    """Of the tables in `copied`, as the publication had them when they were begun."""

    def passed(self, lsn: int) -> Progress:
        fresh = None if self.fresh is not None and lsn >= self.fresh.until else self.fresh
        return replace(self, lsn=lsn, transaction=None, seen=0, fresh=fresh)

    def within(self, transaction: int, seen: int) -> Progress:
        return replace(self.passed(transaction), transaction=transaction, seen=seen)

    def with_copy(self, fresh: Fresh) -> Progress:
        copied = dict(self.copied)
        copied.update({table: each.to for table, each in fresh.ranges.items()})
        return replace(self, copied=copied, fresh=fresh if self.lsn < fresh.until else None)

    def without_copy(self, tables: Iterable[str]) -> Progress:
        """Tables that are captured from now on only."""
        return replace(self, copied={**self.copied, **dict.fromkeys(tables)})

    def only(self, tables: Collection[str], identities: Mapping[str, str]) -> Progress:
        """Tables that are not captured any more are forgotten: who wants one again gets a new copy."""
        copied = {table: key for table, key in self.copied.items() if table in tables}
        known = {
            table: found
            for table in copied
            if (found := self.identities.get(table) or identities.get(table)) is not None
        }
        return replace(self, copied=copied, identities=known)

    def is_copied(self, table: str) -> bool:
        return table in self.copied and self.copied[table] is None

    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = {"system": self.system, "lsn": lsn_text(self.lsn)}
        if self.transaction is not None:
            found |= {"transaction": lsn_text(self.transaction), "seen": self.seen}
        found["copied"] = {table: _listed(key) for table, key in self.copied.items()}
        found["identities"] = dict(self.identities)
        if self.fresh is not None:
            found["fresh"] = {
                "visible": self.fresh.visible.text,
                "until": lsn_text(self.fresh.until),
                "ranges": {t: [_listed(r.after), _listed(r.to)] for t, r in self.fresh.ranges.items()},
            }
        return found


def progress_of(document: Mapping[str, Any]) -> Progress:
    """Raises KeyError, TypeError, ValueError or BadLsn."""
    transaction = document.get("transaction")
    return Progress(
        str(document["system"]),
        lsn_of(document["lsn"]),
        None if transaction is None else lsn_of(transaction),
        int(document.get("seen", 0)),
        {table: _key(key) for table, key in document["copied"].items()},
        _fresh_of(document["fresh"]) if document.get("fresh") else None,
        {str(table): str(each) for table, each in (document.get("identities") or {}).items()},
    )


def _fresh_of(found: Mapping[str, Any]) -> Fresh:
    ranges = {table: Range(_key(after), _key(to)) for table, (after, to) in found["ranges"].items()}
    return Fresh(visible_of(found["visible"]), lsn_of(found["until"]), ranges)


def _listed(key: Key | None) -> list[str] | None:
    return None if key is None else list(key)


def _key(found: Sequence[str] | None) -> Key | None:
    return None if found is None else tuple(str(each) for each in found)
