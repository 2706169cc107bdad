"""A table whose changes wait for their turn among processes; see `locks.turn`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headrace.spark.lake import locks
from headrace.spark.lake.config import Maintenance
from headrace.spark.lake.table_schema import Following
from headrace.spark.lake.tables.landing import LandedFile, Landing
from headrace.spark.lake.tables.table import Commit, Table, Upkeep


class InTurn:
    def __init__(self, table: Table, state: str, key: str) -> None:
        self._table = table
        self._state = state
        self._key = key
        self.scale_may_grow = table.scale_may_grow

    @property
    def name(self) -> str:
        return self._table.name

    def schema(self) -> StructType | None:
        return self._table.schema()

    def create(self, schema: StructType) -> None:
        with locks.turn(self._state, self._key):
            self._table.create(schema)

    def change(self, following: Following) -> None:
        with locks.turn(self._state, self._key):
            self._table.change(following)

    def last(self, writer: str) -> int:
        return self._table.last(writer)

    def recover(self, writer: str) -> None:
        self._table.recover(writer)

    def append(self, frame: DataFrame, commit: Commit) -> None:
        with locks.turn(self._state, self._key):
            self._table.append(frame, commit)

    def landing(self, commit: Commit) -> Landing:
        return self._table.landing(commit)

    def add(self, landing: Landing, files: Sequence[LandedFile], commit: Commit) -> None:
        with locks.turn(self._state, self._key):
            self._table.add(landing, files, commit)

    def read(self) -> DataFrame:
        return self._table.read()

    def remove(self, keys: DataFrame) -> None:
        with locks.turn(self._state, self._key):
            self._table.remove(keys)

    def maintain(self, settings: Maintenance) -> Upkeep:
        with locks.turn(self._state, self._key):
            return self._table.maintain(settings)
