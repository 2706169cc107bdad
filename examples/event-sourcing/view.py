"""The accounts as a table on Spark, from the same events: for whoever asks about all accounts at once."""

from __future__ import annotations

from pathlib import Path

from accounts import Account
from pyspark.sql import DataFrame, SparkSession

from headrace.spark import read_tables, run_tables

#: For one machine and little data.
SMALL = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def configuration(bootstrap: str, directory: Path) -> Path:
    file = directory / "view.toml"
    file.write_text(Path(__file__).with_name("view.toml").read_text().replace("BOOTSTRAP", bootstrap))
    return file


def bring_up(spark: SparkSession, file: Path) -> DataFrame:
    """Up to where the events end now. A next run goes on from there, or from wherever this one was killed."""
    run_tables(spark, file, once=True)
    return read_tables(spark, file, "accounts")["accounts"]


def accounts_in(table: DataFrame) -> dict[str, Account]:
    return {row.key: Account(row.version, row.balance) for row in table.collect()}
