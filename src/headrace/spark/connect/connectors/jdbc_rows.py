"""Rows of any database with a JDBC driver, that are new by a column that rises. Spark's own reader reads
them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.connect.api import Config, GiveUp, Position, Settings, Source, Step
from headrace.connect.jdbc.statements import Kind as ColumnKind
from headrace.connect.jdbc.statements import Place, Rising, bound_query, rows_query, types_query
from headrace.connect.settings import Importance, Kind, Setting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MODES = ("incrementing", "timestamp", "timestamp+incrementing")


class JdbcRows(Source):
    settings: ClassVar[Settings] = Settings(
        Setting("connection.url", doc="jdbc:mariadb://HOST/DATABASE and so on.", importance=Importance.HIGH),
        Setting("connection.user", default="", doc="Who logs in.", importance=Importance.HIGH),
        Setting("connection.password", Kind.PASSWORD, "", "With which password.", Importance.HIGH),
        Setting("connection.driver", default="", doc="The driver's class, where its jar does not say it."),
        Setting("topic.prefix", doc="Topics are PREFIX.TABLE.", importance=Importance.HIGH),
        Setting("table.include.list", Kind.LIST, doc="Tables, with commas between them."),
        Setting("mode", default="incrementing", doc="Which columns rise.", one_of=_MODES),
        Setting("incrementing.column.name", default="id", doc="A number that no row gets twice."),
        Setting(
            "timestamp.column.name", default="", doc="A time that every change of a row sets to the present."
        ),
        Setting(
            "timestamp.delay.interval.ms",
            Kind.INT,
            0,
            "So much younger rows are left for later, in whole seconds: longer than a transaction takes.",
            least=0,
        ),
        Setting("key.columns", Kind.LIST, (), "Of the record's key; without it the incrementing column."),
        Setting("batch.max.rows", Kind.INT, 100_000, "Rows of a table in one batch.", least=1),
    )

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        mode = config.text("mode")
        self._rising = Rising(
            config.text("timestamp.column.name") if "timestamp" in mode else "",
            config.text("incrementing.column.name") if "incrementing" in mode else "",
            config["timestamp.delay.interval.ms"],
        )
        self._connection: Any = None
        self._kinds: dict[str, dict[str, ColumnKind]] = {}

    @classmethod
    def check(cls, config: Config) -> Mapping[str, str]:
        found = {}
        if not config.text("connection.url").startswith("jdbc:"):
            found["connection.url"] = "it begins with jdbc:"
        if not config["table.include.list"]:
            found["table.include.list"] = "name tables"
        if "timestamp" in config.text("mode") and not config.get("timestamp.column.name"):
            found["timestamp.column.name"] = "this mode needs it"
        if config.text("mode") == "timestamp" and not config["key.columns"]:
            found["key.columns"] = "this mode needs them: no column tells rows apart"
        return found

    @classmethod
    def check_position(cls, config: Config, position: Position) -> None:  # noqa: ARG003 - of the interface
        for partition, offset in position:
            if not partition.get("table"):
                raise GiveUp(f'{partition} is no table: partitions are {{"table": NAME}}')
            if not offset:
                raise GiveUp("an offset names the columns and their values, or is null")

    def topics(self) -> list[str]:
        return [self._topic(table) for table in self.config["table.include.list"]]

    def plan(self, position: Position) -> Step | None:
        queries: dict[str, str] = {}
        for table in self.config["table.include.list"]:
            partition = {"table": table}
            after = self._after(position.offset(partition))
            kinds = self._kinds_of(table)
            query = bound_query(table, self._rising, kinds, after)
            listed = [kinds[each] for each in self._rising.columns]
            to = self._connected().last(query, self.config["batch.max.rows"], listed)
            if to is not None:
                queries[table] = rows_query(table, self._rising, kinds, after, to)
                position = position.moved(partition, dict(zip(self._rising.columns, to, strict=True)))
        if not queries:
            return None
        return Step(position, frame=lambda spark: self._frame(spark, queries), more=True)

    def stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _frame(self, spark: SparkSession, queries: Mapping[str, str]) -> DataFrame:
        from pyspark.sql import functions as sf

        keys = list(self.config["key.columns"]) or [self._rising.incrementing]
        frames = []
        for table, query in queries.items():
            options = {"url": self.config.text("connection.url"), **self._properties(), "query": query}
            rows = spark.read.format("jdbc").options(**options).load()
            frames.append(
                rows.select(
                    sf.lit(self._topic(table)).alias("topic"),
                    sf.to_json(sf.struct(*keys), {"ignoreNullFields": "false"}).alias("key"),
                    sf.to_json(sf.struct(*rows.columns), {"ignoreNullFields": "false"}).alias("value"),
                )
            )
        return reduce(lambda one, other: one.union(other), frames)

    def _properties(self) -> dict[str, str]:
        given = {each: self.config.text(f"connection.{each}") for each in ("user", "password", "driver")}
        return {name: value for name, value in given.items() if value}

    def _after(self, offset: Mapping[str, Any] | None) -> Place | None:
        if offset is None:
            return None
        try:
            return tuple(str(offset[each]) for each in self._rising.columns)
        except KeyError as error:
            raise GiveUp(
                f"the connector's offset has no {error}: another mode wrote it. DELETE the offsets to "
                "begin anew"
            ) from None

    def _kinds_of(self, table: str) -> dict[str, ColumnKind]:
        if table not in self._kinds:
            found = self._connected().kinds(types_query(table, self._rising))
            self._kinds[table] = dict(zip(self._rising.columns, found, strict=True))
        return self._kinds[table]

    def _topic(self, table: str) -> str:
        return f"{self.config.text('topic.prefix')}.{table}"

    def _connected(self) -> Any:
        if self._connection is None:
            from headrace.spark.connect.jdbc import JdbcConnection

            self._connection = JdbcConnection(self.config.text("connection.url"), self._properties())
        return self._connection
