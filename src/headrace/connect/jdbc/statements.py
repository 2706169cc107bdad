"""Queries for rows that are new by columns that rise, in the SQL that databases with a JDBC driver share.
Pure.

Names of tables and columns go into them as they were configured: who needs quotes writes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from headrace.connect.api import GiveUp

_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?)?")


class Kind(Enum):
    """What a value's literal looks like."""

    NUMBER = "number"
    TIME = "time"
    DATE = "date"
    TEXT = "text"

    @classmethod
    def of(cls, jdbc_type: int) -> Kind:
        """By `java.sql.Types`."""
        return _KINDS.get(jdbc_type, cls.TEXT)


_KINDS: Final = {
    **dict.fromkeys((-7, -6, 5, 4, -5, 6, 7, 8, 2, 3), Kind.NUMBER),
    **dict.fromkeys((93, 2014), Kind.TIME),
    91: Kind.DATE,
}

Place = tuple[str, ...]
"""The values of the rising columns, as JDBC prints them."""


@dataclass(frozen=True)
class Rising:
    timestamp: str
    """Empty: none."""
    incrementing: str
    delay_ms: int = 0

    @property
    def columns(self) -> list[str]:
        return [each for each in (self.timestamp, self.incrementing) if each]


def types_query(table: str, rising: Rising) -> str:
    """Without rows: for the types of the columns."""
    return f"SELECT {', '.join(rising.columns)} FROM {table} WHERE 1 = 0"


def bound_query(table: str, rising: Rising, kinds: Mapping[str, Kind], after: Place | None) -> str:
    """The places behind one, in their order."""
    listed = ", ".join(rising.columns)
    where = _there(rising)
    if after is not None:
        where.append(_compared(rising.columns, kinds, after, ">", ">"))
    if rising.timestamp and rising.delay_ms:
        seconds = -(-rising.delay_ms // 1000)
        where.append(
            f"{rising.timestamp} < {{fn TIMESTAMPADD(SQL_TSI_SECOND, -{seconds}, CURRENT_TIMESTAMP)}}"
        )
    return f"SELECT {listed} FROM {table} WHERE {' AND '.join(where)} ORDER BY {listed}"


def rows_query(table: str, rising: Rising, kinds: Mapping[str, Kind], after: Place | None, to: Place) -> str:
    where = _there(rising)
    if after is not None:
        where.append(_compared(rising.columns, kinds, after, ">", ">"))
    where.append(_compared(rising.columns, kinds, to, "<", "<="))
    return f"SELECT * FROM {table} WHERE {' AND '.join(where)}"


def _there(rising: Rising) -> list[str]:
    return [f"{each} IS NOT NULL" for each in rising.columns]


def _compared(columns: Sequence[str], kinds: Mapping[str, Kind], place: Place, sign: str, last: str) -> str:
    """Column by column, since not every database compares rows."""
    found, same = [], ""
    for at, (column, value) in enumerate(zip(columns, place, strict=True)):
        given = literal(kinds[column], value)
        found.append(f"{same}{column} {last if at == len(columns) - 1 else sign} {given}")
        same += f"{column} = {given} AND "
    return f"({' OR '.join(found)})"


def literal(kind: Kind, value: str) -> str:
    """Times by the escapes of JDBC, which each driver makes its database's own. Raises GiveUp."""
    fits = {Kind.NUMBER: _NUMBER, Kind.TIME: _TIME, Kind.DATE: _TIME}.get(kind)
    if fits is not None and not fits.fullmatch(value):
        raise GiveUp(
            f"the connector's offset has {value!r}, where the column has a {kind.value}: another column "
            "or mode wrote it. Stop the connector and DELETE its offsets to begin anew"
        )
    if kind is Kind.NUMBER:
        return value
    if kind is Kind.TIME:
        return f"{{ts '{value}'}}"
    if kind is Kind.DATE:
        return f"{{d '{value}'}}"
    return "'" + value.replace("'", "''") + "'"
