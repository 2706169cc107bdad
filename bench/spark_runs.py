"""What the measurements of Spark jobs share: a session and a broker of their own, and runs kept as JSON."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from tests.apache_kafka import CACHE

from bench.broker import Broker
from bench.headrace_broker import Headrace
from headrace.spark import session

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@contextmanager
def session_for(name: str) -> Iterator[tuple[SparkSession, Path]]:
    """With a directory that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"headrace-{name}-") as directory:
        spark = session(
            name,
            master="local[2]",
            jar_directory=CACHE / "spark-jars",
            warehouse=Path(directory) / "warehouse",
            extra={
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
                "spark.driver.memory": "2g",
            },
        )
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark, Path(directory)
        finally:
            spark.stop()


@contextmanager
def beside_broker(name: str) -> Iterator[tuple[SparkSession, Broker, Path]]:
    """The same, and a broker whose files are in that directory."""
    with session_for(name) as (spark, directory):
        broker = Broker(Headrace(), directory / "headrace")
        try:
            broker.start()
            yield spark, broker, directory
        finally:
            broker.stop()


def keep(runs: Sequence[DataclassInstance], file: Path | None) -> None:
    if file is not None:
        listed: list[dict[str, Any]] = [asdict(run) for run in runs]
        file.write_text(json.dumps(listed, indent=1) + "\n")
