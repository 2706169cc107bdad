"""A lake in a directory of the test's own, and records to load into it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, Row, SparkSession

from headrace.spark.lake import config as configs
from headrace.spark.lake import job
from headrace.spark.lake.batches import Done
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.tables.opening import open_table
from tests.broker_process import BrokerProcess
from tests.spark.places import places


class LakeUnderTest:
    """`topics` is what stands below [[topics]]. A namespace of its own keeps Iceberg's tables apart."""

    def __init__(
        self, spark: SparkSession, broker: BrokerProcess, directory: Path, table_format: str
    ) -> None:
        self.spark = spark
        self.broker = broker
        self.directory = directory
        self.format = table_format

    def config(self, topics: str, more: str = "") -> LakeConfig:
        namespace = f"n{abs(hash(str(self.directory))):x}"
        text = (
            f'[kafka]\n"bootstrap.servers" = "{self.broker.bootstrap}"\n'
            f'[lake]\nformat = "{self.format}"\n'
            f"{places(self.spark, self.format, self.directory / 'lake')}"
            f'namespace = "{namespace}"\n{more}\n{topics}'
        )
        return configs.parse(text, self.directory / "lake.toml")

    def load(self, config: LakeConfig) -> list[Done]:
        return job.run(self.spark, config, once=True)

    def table(self, config: LakeConfig, name: str) -> DataFrame:
        return open_table(self.spark, config, name).read()

    def rows(self, config: LakeConfig, name: str) -> list[Row]:
        return self.table(config, name).orderBy("partition", "offset").collect()

    def produce(self, topic: str, values: Iterable[bytes | None], partition: int = 0) -> None:
        """With another client than Spark's: that starts no job."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for number, value in enumerate(values):
            producer.produce(topic, value, f"k{number}".encode(), partition)
        assert producer.flush(30) == 0

    def produce_json(self, topic: str, values: Iterable[object]) -> None:
        self.produce(topic, [json.dumps(value).encode() for value in values])


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def table_format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lake(spark: SparkSession, headrace: BrokerProcess, tmp_path: Path, table_format: str) -> LakeUnderTest:
    return LakeUnderTest(spark, headrace, tmp_path, table_format)


@pytest.fixture
def make_lake(spark: SparkSession, tmp_path: Path) -> Callable[[BrokerProcess, str], LakeUnderTest]:
    return lambda broker, table_format: LakeUnderTest(spark, broker, tmp_path, table_format)
