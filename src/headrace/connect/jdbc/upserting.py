"""What makes a table of staged rows into rows of their target, in the transaction that also says how far the
connector is. Pure: SQL and nothing else.

Names go in quoted, values by markers; a field's or a topic's name only chooses among the columns and tables
that the database itself has named.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.connect.jdbc.columns import Column
from headrace.connect.jdbc.dialects import Dialect, Joining

NUMBER: Final = "hr_n"
STEP: Final = "hr_step"
KIND: Final = "hr_kind"
SHAPE: Final = "hr_shape"
TOPIC: Final = "hr_topic"
PARTITION: Final = "hr_partition"
OFFSET: Final = "hr_offset"
REASON: Final = "hr_reason"


class Target(NamedTuple):
    name: str
    """For people."""
    qualified: str
    """Quoted, for SQL."""
    columns: tuple[Column, ...]
    keys: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def key_indexes(self) -> list[int]:
        return [self.names.index(key) for key in self.keys]


class Piece(NamedTuple):
    """Some of the staged rows."""

    step: int = 0
    first: int = 0
    last: int = 2**63 - 1


def staged_name(index: int) -> str:
    """Of the target's column with this index."""
    return f"c{index}"


class Upserting:
    """The statements for one target."""

    def __init__(self, dialect: Dialect, target: Target, stage: str) -> None:
        self._dialect = dialect
        self._target = target
        self._stage = dialect.quoted(stage)
        self._index = dialect.quoted(f"{stage}_i")

    def create(self) -> str:
        kinds = {
            NUMBER: "BIGINT NOT NULL",
            STEP: "INTEGER NOT NULL",
            KIND: "CHAR(1) NOT NULL",
            SHAPE: f"VARCHAR({len(self._target.columns)}) NOT NULL",
            TOPIC: "VARCHAR(249) NOT NULL",
            PARTITION: "INTEGER NOT NULL",
            OFFSET: "BIGINT NOT NULL",
            REASON: self._dialect.text,
        }
        for index, column in enumerate(self._target.columns):
            is_key = column.name in self._target.keys
            kinds[staged_name(index)] = self._dialect.staged_type(column, is_key=is_key)
        listed = ", ".join(f"{self._dialect.quoted(name)} {kind}" for name, kind in kinds.items())
        return f"CREATE TABLE {self._stage} ({listed})"

    def drop(self) -> str:
        return f"DROP TABLE {self._stage}"

    def index(self) -> str | None:
        """Where rows are looked for one by one."""
        if self._dialect.joining is not Joining.SUBQUERY or not self._target.keys:
            return None
        keys = ", ".join(self._dialect.quoted(staged_name(index)) for index in self._target.key_indexes)
        return f"CREATE INDEX {self._index} ON {self._stage} ({keys})"

    def doubled(self) -> str:
        """How many rows there are, and how many different ones: a task that was repeated writes twice."""
        number = self._dialect.quoted(NUMBER)
        return f"SELECT COUNT(*), COUNT(DISTINCT {number}) FROM {self._stage}"

    def refused(self) -> str:
        listed = ", ".join(self._dialect.quoted(each) for each in (TOPIC, PARTITION, OFFSET, REASON))
        return f"SELECT {listed} FROM {self._stage} WHERE {self._dialect.quoted(KIND)} = 'x'"

    def steps(self) -> str:
        return f"SELECT MAX({self._dialect.quoted(STEP)}) FROM {self._stage}"

    def shapes(self) -> str:
        shape, kind = self._dialect.quoted(SHAPE), self._dialect.quoted(KIND)
        return f"SELECT DISTINCT {shape} FROM {self._stage} WHERE {kind} IN ('u', 'r')"

    def deletes(self) -> str:
        return f"SELECT COUNT(*) FROM {self._stage} WHERE {self._dialect.quoted(KIND)} IN ('d', 'r')"

    def span(self, piece: Piece) -> str:
        number = self._dialect.quoted(NUMBER)
        return (
            f"SELECT MIN({number}), MAX({number}), COUNT(*) FROM {self._stage} s WHERE {self._within(piece)}"
        )

    def place(self, number: int) -> str:
        listed = ", ".join(self._dialect.quoted(each) for each in (TOPIC, PARTITION, OFFSET))
        return f"SELECT {listed} FROM {self._stage} WHERE {self._dialect.quoted(NUMBER)} = {number:d}"

    def delete(self, piece: Piece) -> str:
        table, kind = self._target.qualified, self._dialect.quoted(KIND)
        where = f"{self._same(self._left)} AND {self._within(piece)} AND s.{kind} IN ('d', 'r')"
        if self._dialect.joining is Joining.FROM:
            return f"DELETE FROM {table} AS t USING {self._stage} s WHERE {where}"
        if self._dialect.joining is Joining.JOIN:
            return f"DELETE t FROM {table} AS t JOIN {self._stage} s ON {where}"
        return f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM {self._stage} s WHERE {where})"

    def update(self, shape: str, piece: Piece) -> str | None:
        """None where a row of this shape has nothing but its key."""
        changed = [index for index in _set(shape) if self._target.names[index] not in self._target.keys]
        if not changed:
            return None
        table = self._target.qualified
        where = f"{self._same(self._left)} AND {self._shaped(shape, piece)}"
        if self._dialect.joining is Joining.SUBQUERY:
            new = ", ".join(
                f"{self._column(each)} = (SELECT {self._value(each)} FROM {self._stage} s WHERE {where})"
                for each in changed
            )
            found = f"EXISTS (SELECT 1 FROM {self._stage} s WHERE {where})"
            return f"UPDATE {table} SET {new} WHERE {found}"
        if self._dialect.joining is Joining.JOIN:
            new = ", ".join(f"t.{self._column(each)} = {self._value(each)}" for each in changed)
            return f"UPDATE {table} AS t JOIN {self._stage} s ON {where} SET {new}"
        new = ", ".join(f"{self._column(each)} = {self._value(each)}" for each in changed)
        return f"UPDATE {table} AS t SET {new} FROM {self._stage} s WHERE {where}"

    def insert(self, shape: str, piece: Piece, *, unless_there: bool = True) -> str:
        indexes = _set(shape)
        columns = ", ".join(self._column(each) for each in indexes)
        values = ", ".join(self._value(each) for each in indexes)
        found = ""
        if unless_there:
            found = f" AND NOT EXISTS (SELECT 1 FROM {self._target.qualified} t WHERE {self._same('t')})"
        return (
            f"INSERT INTO {self._target.qualified} ({columns}){self._dialect.overriding} "
            f"SELECT {values} FROM {self._stage} s WHERE {self._shaped(shape, piece)}{found}"
        )

    @property
    def _left(self) -> str:
        """The target in a statement that changes it. Not every database takes another name there."""
        return self._target.qualified if self._dialect.joining is Joining.SUBQUERY else "t"

    def _same(self, left: str) -> str:
        return " AND ".join(
            f"{left}.{self._column(each)} = {self._value(each)}" for each in self._target.key_indexes
        )

    def _within(self, piece: Piece) -> str:
        step, number = self._dialect.quoted(STEP), self._dialect.quoted(NUMBER)
        return f"s.{step} = {piece.step:d} AND s.{number} BETWEEN {piece.first:d} AND {piece.last:d}"

    def _shaped(self, shape: str, piece: Piece) -> str:
        assert set(shape) <= {"0", "1"}, "it is written into the statement"
        name, kind = self._dialect.quoted(SHAPE), self._dialect.quoted(KIND)
        return f"{self._within(piece)} AND s.{name} = '{shape}' AND s.{kind} IN ('u', 'r')"

    def _column(self, index: int) -> str:
        return self._dialect.quoted(self._target.names[index])

    def _value(self, index: int) -> str:
        staged, column = f"s.{self._dialect.quoted(staged_name(index))}", self._target.columns[index]
        return self._dialect.cast(column, staged, is_key=column.name in self._target.keys)


def _set(shape: str) -> list[int]:
    return [index for index, mark in enumerate(shape) if mark == "1"]
