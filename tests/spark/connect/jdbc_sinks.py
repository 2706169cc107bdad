"""A sink by JDBC without a broker: batches of given records, and a database that is asked by statements of
its own."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from headrace.connect.api import Config, GiveUp, Rejected
from headrace.connect.plugins import all_settings
from headrace.core.ids import TopicPartition
from headrace.spark.connect.connectors.jdbc_sink import JdbcSink

_FRAME = (
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key:string,value:binary>>"
)


class Derby:
    """Inside the session's Java process."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.url = f"jdbc:derby:{folder / 'db'}"
        jvm: Any = spark._jvm
        # Derby asks for it once, and otherwise writes into the directory of whoever runs this.
        jvm.java.lang.System.setProperty("derby.stream.error.file", str(folder / "derby.log"))
        self._connection = jvm.java.sql.DriverManager.getConnection(f"{self.url};create=true")

    def run(self, *statements: str) -> None:
        statement = self._connection.createStatement()
        for each in statements:
            statement.execute(each)
        statement.close()

    def rows(self, query: str) -> list[tuple[str | None, ...]]:
        statement = self._connection.createStatement()
        found = statement.executeQuery(query)
        width = range(1, found.getMetaData().getColumnCount() + 1)
        rows: list[tuple[str | None, ...]] = []
        while found.next():
            rows.append(tuple(found.getString(at) for at in width))
        statement.close()
        return rows

    def close(self) -> None:
        self._connection.close()


class Given(NamedTuple):
    """A record of partition 0 of topic `orders`, if nothing else is said."""

    offset: int
    key: Any
    value: Any
    partition: int = 0
    topic: str = "orders"


class GivenBatch:
    """See `headrace.connect.api.Batch`."""

    def __init__(self, spark: SparkSession, given: Collection[Given], *, tolerant: bool = False) -> None:
        self.spark = spark
        self.given = list(given)
        self.letters: list[Rejected] = []
        self._tolerant = tolerant

    @property
    def frame(self) -> DataFrame:
        at = datetime(2026, 3, 1, tzinfo=UTC)
        rows: list[tuple[Any, ...]] = [
            (g.topic, g.partition, g.offset, at, _bytes(g.key), _bytes(g.value), []) for g in self.given
        ]
        return self.spark.createDataFrame(rows, _FRAME)

    @property
    def ranges(self) -> Mapping[TopicPartition, tuple[int, int]]:
        found: dict[TopicPartition, tuple[int, int]] = {}
        for each in self.given:
            partition = TopicPartition(each.topic, each.partition)
            first, end = found.get(partition, (each.offset, each.offset + 1))
            found[partition] = (min(first, each.offset), max(end, each.offset + 1))
        return found

    @property
    def ends(self) -> Mapping[TopicPartition, int]:
        return {partition: end for partition, (_, end) in self.ranges.items()}

    @property
    def number(self) -> int:
        return sum(self.ends.values())

    def of_topics(self, topics: Collection[str]) -> GivenBatch:
        return GivenBatch(self.spark, [each for each in self.given if each.topic in topics])

    def reject(self, rejected: Iterable[Rejected] | DataFrame) -> None:
        assert not isinstance(rejected, DataFrame)
        self.letters += rejected
        if not self._tolerant:
            raise GiveUp(self.letters[0].reason)

    def put(self, sink: type[Any]) -> None:
        raise AssertionError("this sink writes")


def _bytes(value: Any) -> bytearray | None:
    if value is None:
        return None
    return bytearray(value if isinstance(value, bytes) else json.dumps(value).encode())


def sink_of(url: str, **settings: str) -> JdbcSink:
    """Of a worker that has just started."""
    given = {
        "name": "rows",
        "connector.class": "jdbc-sink",
        "connection.url": url,
        "topics": "orders",
        "tasks.max": "2",
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    config = Config("rows", all_settings(JdbcSink).parse(given), given)
    assert JdbcSink.check(config) == {}
    return JdbcSink(config)
