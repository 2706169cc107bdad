"""Records as rows of Postgres tables, by key. Where a partition is stands in the same transaction as its
rows, so each record counts once, whatever dies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any, ClassVar, Final

from headrace.connect.api import Config, GiveUp, Rejected, Sink, SinkRecord
from headrace.connect.postgres.database import Address, connect, told
from headrace.connect.postgres.target import (
    Positions,
    TargetTable,
    one_spelling,
    table_name,
    target_table,
    write,
)
from headrace.connect.settings import Importance, Kind, Setting, Settings
from headrace.connect.upserts import BadRow, Change, change_of, outcome
from headrace.core.ids import TopicPartition
from headrace.spark.connect.connectors.postgres_address import DATABASE, address_of

_AT_A_TIME: Final = 20_000
"""Records in a transaction."""


class PostgresSink(Sink):
    letters_first: ClassVar[bool] = True
    settings: ClassVar[Settings] = DATABASE + Settings(
        Setting(
            "table.name.format",
            default="${topic}",
            doc="The table of a topic: ${topic} is the topic, ${table} its last two parts, as in "
            "PREFIX.SCHEMA.TABLE. Without a schema it is public.",
            importance=Importance.HIGH,
        ),
        Setting(
            "delete.enabled", Kind.BOOLEAN, True, "Whether a record without value deletes the row of its key."
        ),
        Setting(
            "positions.table",
            default="public.headrace_connect_positions",
            doc="Where the connector keeps how far it is; made if it is missing.",
            importance=Importance.LOW,
        ),
    )

    @classmethod
    def missing(cls) -> str | None:
        if find_spec("psycopg") is None:
            return "Postgres needs psycopg: pip install 'headrace[postgres]'"
        return None

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._connection: Any = None
        self._tables: dict[str, TargetTable] = {}

    def position(self) -> Mapping[TopicPartition, int]:
        positions = self._positions()
        positions.make()
        with told("tell how far the connector is"):
            return {partition: offset for partition, offset in positions.all().items() if offset}

    def alter_position(self, ends: Mapping[TopicPartition, int | None]) -> None:
        positions = self._positions()
        positions.make()
        with told("set how far the connector is"), self._connected().transaction():
            for partition, end in ends.items():
                positions.put(partition, end)

    def put(self, records: Iterable[SinkRecord]) -> list[Rejected]:
        rejected: list[Rejected] = []
        waiting: list[SinkRecord] = []
        for record in records:
            waiting.append(record)
            if len(waiting) >= _AT_A_TIME:
                self._store(waiting, rejected)
                waiting = []
        self._store(waiting, rejected)
        return rejected

    def stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _store(self, records: list[SinkRecord], rejected: list[Rejected]) -> None:
        """One transaction: rows, and where the partitions are. It is only tried once a record was refused
        that is no dead letter yet: the records that are to be are found out, and nothing passes them."""
        if not records:
            return
        from psycopg import Rollback

        connection, positions = self._connected(), self._positions()
        by_partition: dict[TopicPartition, list[SinkRecord]] = {}
        for record in records:
            by_partition.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        with told("store a batch"), connection.transaction() as transaction:
            changes: dict[str, list[tuple[SinkRecord, Change]]] = {}
            for partition in sorted(by_partition):
                known = positions.locked(partition)
                fresh = [each for each in by_partition[partition] if each.offset >= known]
                for record in fresh:
                    if (*partition, record.offset) not in self.dead:
                        self._add(changes, record, rejected)
                if fresh:
                    positions.put(partition, fresh[-1].offset + 1)
            for name in sorted(changes):
                rejected += self._write(self._table(name), changes[name])
            if rejected or any((*each[:3],) not in self.dead for each in self.unreadable):
                raise Rollback(transaction)

    def _add(
        self,
        changes: dict[str, list[tuple[SinkRecord, Change]]],
        record: SinkRecord,
        rejected: list[Rejected],
    ) -> None:
        name = table_name(self.config.text("table.name.format"), record.topic)
        table = self._table(name)
        try:
            change = change_of(record.key, record.value, table.key_names, table.types)
        except BadRow as error:
            rejected.append(self._rejected(record, str(error)))
            return
        if change.row is not None or self.config["delete.enabled"]:
            changes.setdefault(name, []).append((record, change))

    def _write(self, table: TargetTable, changes: list[tuple[SinkRecord, Change]]) -> list[Rejected]:
        """All at once; where Postgres refuses a value, one by one, to find which."""
        from psycopg import DataError, IntegrityError

        connection = self._connected()
        try:
            with connection.transaction():
                write(
                    connection, table, outcome(one_spelling(connection, table, [each for _, each in changes]))
                )
        except (DataError, IntegrityError):
            rejected = []
            for record, change in changes:
                try:
                    with connection.transaction():
                        write(connection, table, outcome([change]))
                except (DataError, IntegrityError) as error:
                    rejected.append(self._rejected(record, " ".join(str(error).split())))
            return rejected
        return []

    def _rejected(self, record: SinkRecord, reason: str) -> Rejected:
        """Without tolerance nothing of the batch may be committed: the record would be passed over."""
        if self.config["errors.tolerance"] != "all":
            raise GiveUp(
                f"record {record.offset} of {record.topic}-{record.partition} cannot be stored: {reason}. "
                "With errors.tolerance=all such records become dead letters"
            )
        return Rejected(record.topic, record.partition, record.offset, reason)

    def _table(self, name: str) -> TargetTable:
        if name not in self._tables:
            with told(f"describe {name}"):
                self._tables[name] = target_table(self._connected(), name)
        return self._tables[name]

    def _positions(self) -> Positions:
        return Positions(self._connected(), self.config.text("positions.table"), self.config.name)

    def _connected(self) -> Any:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._address, f"headrace {self.config.name}", writes=True)
        return self._connection

    @property
    def _address(self) -> Address:
        return address_of(self.config)
