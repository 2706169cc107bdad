"""What a column of a target takes, and a record's value as a text that its database reads. Pure.

Numbers, booleans, bytes and texts are staged as such. Times, and what only one database has, are staged as
texts, and the database itself casts them: no machine's time zone comes in between.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from enum import Enum
from math import isinf
from typing import Final, NamedTuple

from headrace.connect.upserts import BadRow

_MOST_DIGITS: Final = 38
"""Of Spark's exact numbers."""
_LONGEST: Final = 4_000
"""Characters of a text that can be staged as VARCHAR in every database. Longer ones have no index."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Form(Enum):
    WHOLE = "whole number"
    DECIMAL = "number"
    FLOAT = "floating number"
    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    ZONED = "timestamp with a zone"
    BYTES = "bytes in base64"
    TEXT = "text"
    OWN = "value of its own type"
    """Of a type that only this database has: its own text, and it says what is none."""


_FORMS: Final[Mapping[int, Form]] = {
    **dict.fromkeys((-7, 16), Form.BOOLEAN),
    **dict.fromkeys((-6, 5, 4, -5), Form.WHOLE),
    **dict.fromkeys((6, 7, 8), Form.FLOAT),
    **dict.fromkeys((2, 3), Form.DECIMAL),
    **dict.fromkeys((1, 12, -1, -15, -9, -16, 2005, 2011), Form.TEXT),
    **dict.fromkeys((-2, -3, -4, 2004), Form.BYTES),
    91: Form.DATE,
    92: Form.TIME,
    93: Form.TIMESTAMP,
    2014: Form.ZONED,
}
_BIGINT: Final = -5
_ZONED: Final = ("timestamptz", "timestamp with time zone")
_ZONED_TIMES: Final = ("timetz", "time with time zone")
_TEXTS: Final = ("text", "varchar", "char", "bpchar", "name")


class Column(NamedTuple):
    name: str
    form: Form
    type_name: str = ""
    """As the database names it."""
    size: int = 0
    """Digits, or characters; 0: nobody says."""
    scale: int = 0

    @property
    def is_short(self) -> bool:
        return self.form is Form.TEXT and 0 < self.size <= _LONGEST

    @property
    def is_zoned_time(self) -> bool:
        return self.form is Form.TIME and self.type_name.lower() in _ZONED_TIMES


def column_of(
    name: str, jdbc_type: int, type_name: str, size: int, scale: int, *, signed: bool, own_texts: bool
) -> Column:
    """Of what a driver says (`java.sql.ResultSetMetaData`). `own_texts`: the database calls types of its own
    texts, and takes no other text for them."""
    form = _FORMS.get(jdbc_type, Form.OWN)
    if form is Form.WHOLE and jdbc_type == _BIGINT and not signed:
        return Column(name, Form.DECIMAL, type_name, 20, 0)
    if (form is Form.DECIMAL and not 0 < size <= _MOST_DIGITS) or (
        form is Form.TEXT and own_texts and type_name.lower() not in _TEXTS
    ):
        form = Form.OWN
    if form is Form.TIMESTAMP and type_name.lower() in _ZONED:
        form = Form.ZONED
    return Column(name, form, type_name, max(size, 0), max(scale, 0))


def canonical(column: Column, text: str, *, refused: frozenset[str] = frozenset()) -> str:
    """As it is staged. Raises BadRow. `refused` are characters that the database has no room for."""
    try:
        return _CANONICAL[column.form](column, text, refused)
    except (ValueError, InvalidOperation, OverflowError):
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise BadRow(f"{column.name} is a {column.form.value}, and {shown!r} is none") from None


def _whole(_column: Column, text: str, _refused: frozenset[str]) -> str:
    number = Decimal(text)
    if number != number.to_integral_value() or not -(2**63) <= number < 2**63:
        raise ValueError(text)
    return str(int(number))


def _decimal(column: Column, text: str, _refused: frozenset[str]) -> str:
    """Rounded as databases do; what has too many digits before its point does not fit."""
    with localcontext(prec=2 * _MOST_DIGITS, rounding=ROUND_HALF_UP):
        number = Decimal(text).quantize(Decimal(1).scaleb(-column.scale))
        if not number.is_finite() or abs(number) >= Decimal(10) ** (column.size - column.scale):
            raise ValueError(text)
        return f"{number:f}"


def _float(_column: Column, text: str, _refused: frozenset[str]) -> str:
    """A number that is too large is refused: it is not infinite."""
    number = float(text)
    if isinf(number) and any(each.isdigit() for each in text):
        raise ValueError(text)
    return repr(number)


def _boolean(_column: Column, text: str, _refused: frozenset[str]) -> str:
    known = {"true": "true", "1": "true", "false": "false", "0": "false"}
    if (found := known.get(text.strip().lower())) is None:
        raise ValueError(text)
    return found


def _date(_column: Column, text: str, _refused: frozenset[str]) -> str:
    """A number counts days, as Connect's Date does."""
    if _is_number(text):
        return (_EPOCH.date() + timedelta(days=int(text))).isoformat()
    return (_moment(text).date() if len(text) > 10 else date.fromisoformat(text)).isoformat()


def _time(column: Column, text: str, _refused: frozenset[str]) -> str:
    """In UTC. A number counts milliseconds of the day, as Connect's Time does."""
    zone = "+00:00" if column.is_zoned_time else ""
    if _is_number(text):
        since = timedelta(milliseconds=int(text))
        if not timedelta(0) <= since < timedelta(days=1):
            raise ValueError(text)
        return (_EPOCH + since).time().isoformat() + zone
    found = time.fromisoformat(text)
    if found.tzinfo is not None:
        found = datetime.combine(_EPOCH, found).astimezone(UTC).time()
    return found.isoformat() + zone


def _timestamp(_column: Column, text: str, _refused: frozenset[str]) -> str:
    return _moment(text).replace(tzinfo=None).isoformat(" ", "microseconds")


def _zoned(_column: Column, text: str, _refused: frozenset[str]) -> str:
    return _moment(text).isoformat(" ", "microseconds")


def _moment(text: str) -> datetime:
    """In UTC. A number counts milliseconds, as Connect's Timestamp does; a time without a zone is UTC's."""
    if _is_number(text):
        return _EPOCH + timedelta(milliseconds=int(text))
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _is_number(text: str) -> bool:
    """A date of eight digits is none: it is how ISO 8601 writes days, too, and nobody could tell."""
    return text.removeprefix("-").isdecimal()


def _bytes(_column: Column, text: str, _refused: frozenset[str]) -> str:
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode()
    except binascii.Error:
        raise ValueError(text) from None


def _text(column: Column, text: str, refused: frozenset[str]) -> str:
    if 0 < column.size < len(text):
        raise BadRow(f"{column.name} takes {column.size} characters, and the value has {len(text)}")
    return _own(column, text, refused)


def _own(column: Column, text: str, refused: frozenset[str]) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadRow(f"{column.name} has half a surrogate pair, which is no character") from None
    if not refused.isdisjoint(text):
        raise BadRow(f"{column.name} has a character that this database cannot keep: NUL")
    return text


_CANONICAL: Final[Mapping[Form, Callable[[Column, str, frozenset[str]], str]]] = {
    Form.WHOLE: _whole,
    Form.DECIMAL: _decimal,
    Form.FLOAT: _float,
    Form.BOOLEAN: _boolean,
    Form.DATE: _date,
    Form.TIME: _time,
    Form.TIMESTAMP: _timestamp,
    Form.ZONED: _zoned,
    Form.BYTES: _bytes,
    Form.TEXT: _text,
    Form.OWN: _own,
}


def named_as(name: str, names: frozenset[str]) -> str:
    """The one of these that a field or a topic means: itself, or the only one that differs by case. Itself
    where there is none."""
    if name in names:
        return name
    found = [each for each in names if each.lower() == name.lower()]
    return found[0] if len(found) == 1 else name
