"""How far a connector is, in a table of its target, so that it is said in the same transaction as the rows.

One row of it counts the connector's turns. Who begins reads the count, and every transaction raises it by
one, from the number that was read last: a worker that was thought to be dead finds another number there, and
changes nothing.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from headrace.connect.api import ConnectorFailure
from headrace.connect.jdbc.dialects import Dialect
from headrace.core.ids import TopicPartition
from headrace.spark.connect.jdbc_target import JdbcTarget

_TURNS: Final = TopicPartition("", -1)
"""No partition."""
_LONGEST_NAME: Final = 255


class Positions:
    def __init__(self, target: JdbcTarget, table: str, connector: str) -> None:
        self._target = target
        self._connector = connector
        dialect: Dialect = target.dialect
        self._table = ".".join(dialect.quoted(each) for each in table.split("."))
        names = ("place", "connector", "topic", "topic_partition", "next_offset")
        self._place, self._owner, self._topic, self._partition, self._next = map(dialect.quoted, names)
        self._what = table

    def make(self) -> None:
        """Of workers that begin at once, one makes it."""
        if self._is_there():
            return
        try:
            with self._target.transaction():
                self._target.execute(
                    f"CREATE TABLE {self._table} ({self._place} CHAR(64) NOT NULL PRIMARY KEY, "
                    f"{self._owner} VARCHAR({_LONGEST_NAME}) NOT NULL, {self._topic} VARCHAR(249), "
                    f"{self._partition} DECIMAL(10) NOT NULL, {self._next} DECIMAL(19) NOT NULL)"
                )
        except ConnectorFailure as error:
            if not self._is_there():
                raise ConnectorFailure(
                    f"cannot make {self._what}, where the connector keeps its positions: {error}"
                ) from None

    def all(self) -> dict[TopicPartition, int]:
        """In the caller's transaction, as all that follows."""
        found = self._target.rows(
            f"SELECT {self._owner}, {self._topic}, {self._partition}, {self._next} FROM {self._table} "
            f"WHERE {self._owner} = ? AND {self._partition} >= 0",
            self._name,
        )
        # A database may take names for the same that are not.
        return {
            TopicPartition(str(topic), int(partition or 0)): int(offset or 0)
            for owner, topic, partition, offset in found
            if owner == self._name
        }

    def at(self, partition: TopicPartition) -> int | None:
        found = self._target.rows(
            f"SELECT {self._next} FROM {self._table} WHERE {self._place} = ?", self._place_of(partition)
        )
        return int(found[0][0] or 0) if found else None

    def move(self, partition: TopicPartition, before: int | None, to: int) -> bool:
        """False where somebody else has moved it, and it is not at `before` any more."""
        place = self._place_of(partition)
        if before is None:
            return bool(
                self._target.execute(
                    f"INSERT INTO {self._table} ({self._place}, {self._owner}, {self._topic}, "
                    f"{self._partition}, {self._next}) VALUES (?, ?, ?, ?, ?)",
                    *(place, self._name, partition.topic, partition.partition, to),
                )
            )
        moved = f"UPDATE {self._table} SET {self._next} = ? WHERE {self._place} = ? AND {self._next} = ?"
        return self._target.execute(moved, to, place, before) == 1

    def remove(self, partition: TopicPartition) -> None:
        self._target.execute(f"DELETE FROM {self._table} WHERE {self._place} = ?", self._place_of(partition))

    def turn(self) -> int | None:
        return self.at(_TURNS)

    def take_turn(self, last: int | None) -> int:
        """It locks out all others until the transaction ends. Raises ConnectorFailure."""
        following = (last or 0) + 1
        try:
            is_ours = self.move(_TURNS, last, following)
        except ConnectorFailure:
            if last is not None:
                raise
            is_ours = False  # another one has made the row first
        if not is_ours:
            raise ConnectorFailure(
                f"another worker has written as connector {self._connector} since this one began: this one "
                "changes nothing"
            )
        return following

    @property
    def _name(self) -> str:
        given = self._connector
        return given if len(given) <= _LONGEST_NAME else sha256(given.encode()).hexdigest()

    def _place_of(self, partition: TopicPartition) -> str:
        text = f"{self._connector}\0{partition.topic}\0{partition.partition}"
        return sha256(text.encode()).hexdigest()

    def _is_there(self) -> bool:
        try:
            with self._target.transaction():
                self._target.rows(f"SELECT {self._next} FROM {self._table} WHERE 1 = 0")
        except ConnectorFailure:
            return False
        return True
