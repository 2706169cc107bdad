"""All parts together, in one Spark session: each works in a thread of its own while the shop is open."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession
from rich.console import Console

from clickstream import auditing, configuration, traffic
from clickstream.auditing import Audit
from clickstream.lake import Loading
from clickstream.latest_orders import LatestOrders
from clickstream.proof import Proof, prove
from clickstream.screen import Screen
from clickstream.trading import Trading
from headrace.spark import session

Result = TypeVar("Result")
#: For one machine and a few minutes: what is small is not cut into 200 pieces, and what runs for so short a
#: time is compiled once. All that is compiled needs room: Java has 48 MB for one compiler, and stops at that.
_SPARK = {
    "spark.driver.extraJavaOptions": (
        "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    ),
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def run(console: Console, spark: SparkSession, trading: Trading, directory: Path) -> Proof:
    """One day of the shop, and what has to be done after it closed."""
    bootstrap, lake = trading.bootstrap, directory / "lake"
    loading = Loading(spark, configuration.write("lake.toml", bootstrap, directory))
    table = LatestOrders(spark, configuration.write("table.toml", bootstrap, directory))
    audit = Audit(spark, loading.config, directory / "audit")
    totals = traffic.start(spark, bootstrap, directory / "checkpoints" / "page-traffic")
    closed, stop = threading.Event(), threading.Event()

    def finish() -> Proof:
        """The shop is closed: every part takes what is left, and then the numbers are compared."""
        stop.set()
        for part in parts:
            part.result()
        screen.headline = "closed; the last page views are counted"
        totals.processAllAvailable()
        totals.stop()
        screen.headline = "closed; the last records go into the lake and the table"
        loading.finish()
        table.finish()
        screen.headline = "closed; the audit counts once more"
        audit.finish()
        auditing.draw(bootstrap, directory / "charts")
        screen.headline = "closed; do the numbers agree?"
        return prove(spark, trading, audit, lake, table.read())

    with ThreadPoolExecutor() as pool, Screen(console, trading, loading, table, audit) as screen:
        try:
            parts = [pool.submit(part.run, stop) for part in (loading, table, audit)]
            with ctrl_c_sets(closed):
                watch(screen, pool.submit(trading.run, closed), parts)
            screen.headline = "closed; all parts finish what they have begun"
            return watch(screen, pool.submit(finish))
        except BaseException:
            spark.stop()  # then no part waits for another
            raise
        finally:
            closed.set()
            stop.set()


def watch(screen: Screen, task: Future[Result], parts: Sequence[Future[None]] = ()) -> Result:
    """Until the task is over, or a part has failed."""
    while not task.done():
        screen.show()
        for part in parts:
            if part.done():
                part.result()
        wait([task], 0.5)
    return task.result()


@contextmanager
def ctrl_c_sets(event: threading.Event) -> Iterator[None]:
    """Once: the shop closes early, and everything ends as it should. Twice: at once."""

    def ask(*_: object) -> None:
        event.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def spark_session(directory: Path) -> Iterator[SparkSession]:
    """What Spark has to say goes to spark.log, and not into the picture."""
    ours = os.dup(2)
    with (directory / "spark.log").open("wb") as log:
        os.dup2(log.fileno(), 2)
    try:
        spark = session("clickstream", warehouse=directory / "warehouse", extra=_SPARK)
    finally:
        os.dup2(ours, 2)
        os.close(ours)
    try:
        yield spark
    finally:
        spark.stop()
