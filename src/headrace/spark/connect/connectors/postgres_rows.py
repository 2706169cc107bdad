"""Rows of Postgres that are new by a column that rises. It sees neither deletes nor what a row was between
two looks: `postgres-changes` does, and is the one to take where the database lets it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, ClassVar

from headrace.connect.api import Config, GiveUp, Position, Record, Source, Step
from headrace.connect.postgres.asking import Answer, Asking, Question, answered
from headrace.connect.postgres.database import connect
from headrace.connect.settings import Importance, Kind, Setting, Settings
from headrace.spark.connect.connectors.postgres_address import DATABASE, address_of

_MODES = ("incrementing", "timestamp", "timestamp+incrementing")


class PostgresRows(Source):
    settings: ClassVar[Settings] = DATABASE + Settings(
        Setting("topic.prefix", doc="Topics are PREFIX.SCHEMA.TABLE.", importance=Importance.HIGH),
        Setting("table.include.list", Kind.LIST, doc="Tables as schema.table, with commas between them."),
        Setting("mode", default="incrementing", doc="Which columns rise.", one_of=_MODES),
        Setting("incrementing.column.name", default="id", doc="A number that no row gets twice."),
        Setting(
            "timestamp.column.name", default="", doc="A time that every change of a row sets to the present."
        ),
        Setting(
            "timestamp.delay.interval.ms",
            Kind.INT,
            0,
            "So much younger rows are left for later: longer than a transaction takes, because its rows have "
            "the time at which it began.",
            least=0,
        ),
        Setting("batch.max.rows", Kind.INT, 100_000, "Rows of a table in one batch.", least=1),
    )

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._connection: Any = None
        mode = config.text("mode")
        self._question = Question(
            config.text("timestamp.column.name") if "timestamp" in mode else None,
            config.text("incrementing.column.name") if "incrementing" in mode else None,
            config["timestamp.delay.interval.ms"],
            config["batch.max.rows"],
        )
        self._asking = Asking(self._question)

    @classmethod
    def missing(cls) -> str | None:
        if find_spec("psycopg") is None:
            return "Postgres needs psycopg: pip install 'headrace[postgres]'"
        return None

    @classmethod
    def check(cls, config: Config) -> Mapping[str, str]:
        found = {}
        if not config["table.include.list"] or any(t.count(".") != 1 for t in config["table.include.list"]):
            found["table.include.list"] = "name tables as schema.table"
        if "timestamp" in config.text("mode") and not config.get("timestamp.column.name"):
            found["timestamp.column.name"] = "this mode needs it"
        return found

    @classmethod
    def check_position(cls, config: Config, position: Position) -> None:
        for partition, offset in position:
            if partition.get("table") not in config["table.include.list"]:
                raise GiveUp(f"{partition} is no table of this connector")
            if not offset:
                raise GiveUp("an offset names the columns and their values, or is null")

    def topics(self) -> list[str]:
        return [self._topic(table) for table in self.config["table.include.list"]]

    def plan(self, position: Position) -> Step | None:
        parts = []
        for table in self.config["table.include.list"]:
            partition = {"table": table}
            answer = self._asking.next(self._connected(), table, self._after(position.offset(partition)))
            if answer is not None:
                parts.append(answer)
                after = dict(zip(self._question.columns, answer.to, strict=True))
                position = position.moved(partition, after)
        return Step(position, parts) if parts else None

    def read(self, part: Answer) -> Iterator[Record]:
        for key, row in answered(self._connected(), part, self._question.columns):
            yield Record(self._topic(part.table), row.values, key)

    def stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _after(self, offset: Mapping[str, Any] | None) -> tuple[str, ...] | None:
        if offset is None:
            return None
        try:
            return tuple(str(offset[each]) for each in self._question.columns)
        except KeyError as error:
            raise GiveUp(
                f"the connector's offset has no {error}: another mode wrote it. DELETE the offsets to "
                "begin anew"
            ) from None

    def _topic(self, table: str) -> str:
        return f"{self.config.text('topic.prefix')}.{table}"

    def _connected(self) -> Any:
        if self._connection is None or self._connection.closed:
            self._connection = connect(address_of(self.config), f"headrace {self.config.name}")
        return self._connection
