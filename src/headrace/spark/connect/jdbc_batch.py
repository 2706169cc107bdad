"""Batches into a database by JDBC, each once: staged by Spark, applied by one transaction of the worker.

That transaction has the connector's turn, the places of its partitions, and the rows. So a batch that comes
again finds the places moved, and a worker that was thought to be dead finds that the turn is not its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from hashlib import sha256
from secrets import token_hex

from headrace.connect.api import Batch, Config, ConnectorFailure, Place
from headrace.connect.jdbc.folding import Plan
from headrace.connect.jdbc.progress import is_there
from headrace.core.ids import TopicPartition
from headrace.spark.connect.jdbc_positions import Positions
from headrace.spark.connect.jdbc_table import StagedTable
from headrace.spark.connect.jdbc_target import JdbcTarget, RecordFault

Ends = Mapping[TopicPartition, int | None]


class Writing:
    """Of one connector, for one run of it. Close it."""

    def __init__(self, config: Config) -> None:
        """Raises ConnectorFailure."""
        self._config = config
        properties = {each: config.text(f"connection.{each}") for each in ("user", "password", "driver")}
        self._connection = {name: value for name, value in properties.items() if value}
        self._url = config.text("connection.url")
        self._target = JdbcTarget(self._url, self._connection)
        self._positions = Positions(self._target, config.text("positions.table"), config.name)
        self._prefix = f"hr_{sha256(config.name.encode()).hexdigest()[:8]}_"
        self._has_begun = False
        self._has_swept = False
        self._turn: int | None = None

    def begin(self) -> dict[TopicPartition, int]:
        """Where the connector is. From the first call on, whoever writes in its name shuts this one out."""
        self._positions.make()
        with self._target.undone():
            if not self._has_begun:
                self._turn = self._positions.turn()
                self._has_begun = True
            return self._positions.all()

    def alter(self, ends: Ends) -> None:
        self._positions.make()
        with self._target.transaction():
            self._positions.take_turn(self._positions.turn())
            for partition, end in ends.items():
                self._positions.remove(partition)
                if end is not None:
                    self._positions.move(partition, None, end)

    def write(self, batch: Batch) -> None:
        if not self._has_begun:
            self.begin()
        if not self._has_swept:
            self._sweep()
        with self._target.undone():
            asked = {partition: self._positions.at(partition) for partition in sorted(batch.ranges)}
        known = {partition: end for partition, end in asked.items() if end is not None}
        if is_there(batch.ranges, known):
            return
        dead: frozenset[Place] = frozenset()
        while (refused := self._written(batch, known, dead)) is not None:
            dead |= refused

    def close(self) -> None:
        self._target.close()

    def _written(
        self, batch: Batch, known: Mapping[TopicPartition, int], dead: frozenset[Place]
    ) -> frozenset[Place] | None:
        """None when it is; or records that have become dead letters meanwhile: then again, without them."""
        with ExitStack() as stack:
            tables = self._staged(stack, batch, dead, whole=True)
            refused = [each for table in tables for each in table.refused()]
            if not refused:
                try:
                    self._commit(batch, known, tables)
                except RecordFault as error:
                    fault = error
                else:
                    return None
        if not refused:
            with ExitStack() as stack:
                tables = self._staged(stack, batch, dead, whole=False)
                with self._target.undone():
                    refused = [each for table in tables for each in table.blamed()]
            if not refused:
                raise ConnectorFailure(f"the batch was refused, but none of its records alone: {fault}")
        batch.reject(sorted(refused))
        return frozenset((each.topic, each.partition, each.offset) for each in refused)

    def _commit(self, batch: Batch, known: Mapping[TopicPartition, int], tables: list[StagedTable]) -> None:
        with self._target.transaction():
            turn = self._positions.take_turn(self._turn)
            for partition, (_, end) in sorted(batch.ranges.items()):
                if not self._positions.move(partition, known.get(partition), end):
                    raise ConnectorFailure(f"somebody else has written {partition} meanwhile")
            for table in tables:
                table.apply()
        self._turn = turn

    def _staged(
        self, stack: ExitStack, batch: Batch, dead: frozenset[Place], *, whole: bool
    ) -> list[StagedTable]:
        """They are dropped when the stack ends."""
        found: list[StagedTable] = []
        by_table: dict[str, set[str]] = {}
        for topic in sorted({partition.topic for partition in batch.ranges}):
            by_table.setdefault(table_of(self._config.text("table.name.format"), topic), set()).add(topic)
        attempt = f"{self._prefix}{batch.number}_{token_hex(3)}"
        for index, (name, topics) in enumerate(sorted(by_table.items())):
            share = batch if len(by_table) == 1 else batch.of_topics(topics)
            plan = self._plan(name, dead, whole=whole)
            table = StagedTable(self._target, self._config, plan, f"{attempt}_{index}")
            stack.callback(table.discard)
            table.fill(share, {**self._connection, "url": self._url})
            found.append(table)
        return found

    def _plan(self, table: str, dead: frozenset[Place], *, whole: bool) -> Plan:
        config = self._config
        by_key = config.text("insert.mode") == "upsert"
        keys = None if config.text("pk.mode") == "none" else config["pk.fields"]
        target = self._target.describe(table, keys)
        deletes = by_key and bool(config["delete.enabled"])
        return Plan(target, self._target.dialect.refused, by_key, deletes, dead, whole)

    def _sweep(self) -> None:
        """What a dead worker has staged. Only who has the turn does it, so nobody else is at work on it."""
        with self._target.transaction():
            turn = self._positions.take_turn(self._turn)
        self._turn = turn
        for name in self._target.tables_with(self._prefix):
            with self._target.transaction():
                self._target.execute(f"DROP TABLE {self._target.dialect.quoted(name)}")
        self._has_swept = True


def table_of(form: str, topic: str) -> str:
    """Of a topic as changes of a database name them, PREFIX.SCHEMA.TABLE, `${table}` is SCHEMA.TABLE."""
    return form.replace("${topic}", topic).replace("${table}", ".".join(topic.split(".")[-2:]))
