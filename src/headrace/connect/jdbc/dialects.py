"""In what databases differ: how names are quoted, what staged columns are, and how rows are changed by those
of another table. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from headrace.connect.api import GiveUp
from headrace.connect.jdbc.columns import Column, Form


class Joining(Enum):
    """How a table is changed by the rows of another one."""

    SUBQUERY = "standard SQL"
    FROM = "UPDATE ... FROM, DELETE ... USING"
    JOIN = "UPDATE ... JOIN, DELETE ... JOIN"


@dataclass(frozen=True)
class Dialect:
    quote: str
    """As the driver says; a blank where the database has no quotes."""
    joining: Joining = Joining.SUBQUERY
    text: str = "CLOB"
    blob: str = "BLOB"
    timestamp: str = "TIMESTAMP"
    short_nulls: bool = False
    """A text without a value, which Spark calls a text without a length, can be put into a VARCHAR."""
    casts_own: bool = False
    """A text is cast to a type of the database's own."""
    refused: frozenset[str] = frozenset()
    """Characters that no text can have."""
    faults: frozenset[int] = frozenset()
    """Its own error codes that are about a record, beside the SQL states 22 and 23."""
    overriding: str = ""
    """With which an insert gives numbers that the database would make itself."""
    writer: tuple[tuple[str, str], ...] = ()
    """What Spark's writer has to tell the driver."""

    def quoted(self, name: str) -> str:
        if not self.quote.strip():
            if not name.isidentifier():
                raise GiveUp(f"this database has no quotes for names, and {name!r} needs them")
            return name
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def staged_type(self, column: Column, *, is_key: bool = False) -> str:
        """A key always has a value."""
        length = _staged_length(column)
        if length:
            return f"VARCHAR({length})" if is_key or self.short_nulls else self.text
        if column.form is Form.DECIMAL:
            return f"DECIMAL({column.size},{column.scale})"
        if column.form is Form.BYTES:
            return self.blob
        return _TYPES.get(column.form, self.text)

    def cast(self, column: Column, staged: str, *, is_key: bool = False) -> str:
        """What is staged as a text, as the column's type."""
        if (length := _staged_length(column)) and not is_key and not self.short_nulls:
            staged = f"CAST({staged} AS VARCHAR({length}))"
        form = column.form
        if form is Form.ZONED or column.is_zoned_time or (form is Form.OWN and self.casts_own):
            wanted = column.type_name
        elif form in (Form.DATE, Form.TIME):
            wanted = form.name
        elif form is Form.TIMESTAMP:
            wanted = self.timestamp
        else:
            return staged
        return f"CAST({staged} AS {wanted})"

    def is_fault(self, sql_state: str, code: int) -> bool:
        """A record is to blame: its value does not fit, or breaks a constraint."""
        return sql_state.startswith(("22", "23")) or code in self.faults


_TYPES: Final = {Form.WHOLE: "BIGINT", Form.FLOAT: "DOUBLE PRECISION", Form.BOOLEAN: "BOOLEAN"}
_TIMES: Final = (Form.DATE, Form.TIME, Form.TIMESTAMP, Form.ZONED)
_LONGEST_TIME: Final = 40
_NO_DEFAULT: Final = 1364
_WRONG_VALUE: Final = 1366


def _staged_length(column: Column) -> int:
    """Of a short text; 0: it is none."""
    if column.form in _TIMES:
        return _LONGEST_TIME
    return column.size if column.is_short else 0


def dialect_of(product: str, quote: str) -> Dialect:
    """By the name that the database gives itself."""
    if product == "PostgreSQL":
        return Dialect(
            quote,
            Joining.FROM,
            text="TEXT",
            blob="BYTEA",
            short_nulls=True,
            casts_own=True,
            refused=frozenset("\x00"),
            overriding=" OVERRIDING SYSTEM VALUE",
        )
    if product in ("MariaDB", "MySQL"):
        return Dialect(
            quote,
            Joining.JOIN,
            text="LONGTEXT",
            blob="LONGBLOB",
            short_nulls=True,
            timestamp="DATETIME(6)",
            faults=frozenset({_NO_DEFAULT, _WRONG_VALUE}),
            # Spark quotes names as the standard has it where it does not know the driver's URL.
            writer=(("sessionVariables", "sql_mode='ANSI_QUOTES,STRICT_ALL_TABLES'"),),
        )
    return Dialect(quote)
