"""Tables in a directory of the test's own, and batches or topics to make them from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, Row, SparkSession

from headrace.spark.lake.batches import Done
from headrace.spark.lake.files import LocalFiles
from headrace.spark.table import config as configs
from headrace.spark.table import job
from headrace.spark.table.config import TableConfig
from headrace.spark.table.loader import TableLoader
from headrace.spark.table.opened import Opened
from headrace.spark.table.plan import derived_definitions, route_of
from headrace.spark.table.tables.opening import open_table
from tests.spark.places import places

_CONNECTOR = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>"
)
_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)

#: Partition, offset, key, value; what a batch of the connector consists of.
Record = tuple[int, int, bytes | None, bytes | None]

PLAIN = """
[[tables]]
topic = "{topic}"
name = "orders"
key = "string"
format = "json"
schema = "customer string, total bigint"
"""
ORDERS = f"""{PLAIN}
[[indexes]]
table = "orders"
columns = ["customer"]
[[views]]
name = "customers"
index = "orders_by_customer"
columns = ["count(*) AS orders", "sum(total) AS spent"]
"""


def order(customer: str | None, total: int) -> bytes:
    return json.dumps({"customer": customer, "total": total}).encode()


class TablesUnderTest:
    """A namespace of its own keeps Iceberg's tables apart."""

    def __init__(self, spark: SparkSession, directory: Path, table_format: str) -> None:
        self.spark = spark
        self.directory = directory
        self.format = table_format

    def config(self, text: str, bootstrap: str = "nowhere:1", more: str = "") -> TableConfig:
        namespace = f"n{abs(hash(str(self.directory))):x}"
        head = (
            f'[kafka]\n"bootstrap.servers" = "{bootstrap}"\n'
            f'[store]\nformat = "{self.format}"\n'
            f"{places(self.spark, self.format, self.directory / 'tables')}"
            f'namespace = "{namespace}"\n{more}\n'
        )
        return configs.parse(head + text, self.directory / "table.toml")

    def frame(self, records: Iterable[Record], topic: str = "t") -> DataFrame:
        rows = [
            (key, value, topic, partition, offset, _MOMENT, 0, None)
            for partition, offset, key, value in records
        ]
        return self.spark.createDataFrame(rows, _CONNECTOR)

    def loader(self, config: TableConfig, check_topic: Callable[[], None] = lambda: None) -> TableLoader:
        (spec,) = config.tables
        return TableLoader(config.store, spec, route_of(config.store, spec, 0), 1, LocalFiles(), check_topic)

    def opened(self, config: TableConfig) -> Opened:
        return Opened(self.spark, config.store, config.tables[0])

    def load(self, config: TableConfig, records: Iterable[Record], step: int) -> None:
        self.loader(config).load(self.frame(records), step, self.opened(config))

    def rows(self, config: TableConfig, name: str) -> list[Row]:
        table = open_table(self.spark, config.store, name)
        return [] if table.schema() is None else table.read().collect()

    def run(self, config: TableConfig) -> list[Done]:
        return job.run(self.spark, config, once=True)

    @staticmethod
    def produce(
        bootstrap: str, topic: str, records: Iterable[tuple[bytes | None, bytes | None]], partition: int = 0
    ) -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        for key, value in records:
            producer.produce(topic, value, key, partition)
        assert producer.flush(30) == 0


def derived_names(config: TableConfig) -> list[str]:
    return [config.tables[0].name, *derived_definitions(config.tables[0])]


def check_orders(rows: Mapping[str, list[Row]], model: Mapping[str, tuple[str | None, int]]) -> None:
    """The table, its index and its view, each against a dictionary of key to (customer, total)."""
    orders = rows["orders"]
    assert {row.key: (row.customer, row.total) for row in orders} == model
    assert len(orders) == len(model)
    index = rows["orders_by_customer"]
    wanted = {key: customer for key, (customer, _) in model.items() if customer is not None}
    assert {row.key: row.customer for row in index} == wanted
    assert len(index) == len(wanted)
    spent: dict[str, tuple[int, int]] = {}
    for customer, total in model.values():
        if customer is not None:
            count, before = spent.get(customer, (0, 0))
            spent[customer] = (count + 1, before + total)
    view = rows["customers"]
    assert {row.customer: (row.orders, row.spent) for row in view} == spent
    assert len(view) == len(spent)


@pytest.fixture(params=["delta", "iceberg"])
def table_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path, table_format: str) -> TablesUnderTest:
    return TablesUnderTest(spark, tmp_path, table_format)
