"""A database is captured, joined, mirrored and copied; a worker is killed on the way; all must agree."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import enrich
from check import Verdict, audited, compare_databases, compare_table
from commands import Command, create, filled, worker
from postgres import Postgres
from pyspark.sql.streaming.query import StreamingQuery
from shop import COPY, Shop
from topics import create_topics

from headrace.spark import run_tables, session

#: For one machine and little data: of each JVM, and of this one's Spark.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
)
SETTINGS = {
    **enrich.STORE,
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def run(bootstrap: str, directory: Path, customers: int, orders: int) -> Verdict:
    with ExitStack() as running:
        shop_db, copy_db = running.enter_context(Postgres()), running.enter_context(Postgres())
        shop = Shop(shop_db)
        shop.fill(customers, orders)
        with copy_db.connect() as db:
            db.execute(COPY)
        print(f"the shop has {customers:,} customers and {orders:,} orders; two Postgres servers run")
        second = running.enter_context(Command(directory, "second", "up", "--port", "0")).ready()
        create_topics(bootstrap)
        capture = running.enter_context(worker(directory, "capture", bootstrap))
        writing = running.enter_context(worker(directory, "writing", second))
        mirror = filled(directory, "mirror.toml", BOOTSTRAP=bootstrap, SECOND=second)
        running.enter_context(Command(directory, "mirror", "mirror", "run", "--config", str(mirror)))
        changes = filled(directory, "changes.json", SHOP_PORT=shop_db.port)
        create(changes, capture.ready())
        create(filled(directory, "rows.json", COPY_PORT=copy_db.port), writing.ready())
        with errors_to(directory / "spark.log"):
            spark = session("shop", master="local[2]", warehouse=directory / "warehouse", extra=SETTINGS)
        running.callback(spark.stop)
        query = enrich.start(spark, bootstrap, str(directory / "checkpoint"))
        print("changes are captured, joined on Spark, mirrored to a second cluster and written to the copy")

        closed = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            trading = pool.submit(shop.stay_open, closed)
            try:
                until(lambda: enriched(copy_db) > orders // 2, query)
                capture.kill()
                killed_at = shop.last_order
                print(f"the worker that captures was killed after {shop.changes:,} changes; the shop goes on")
                capture = running.enter_context(worker(directory, "capture again", bootstrap))
                until(lambda: newest(copy_db) > killed_at, query)
                print("another worker goes on where it was")
            finally:
                closed.set()
            trading.result()
        print(f"the shop closes after {shop.changes:,} changes")
        with suppress(TimeoutError):  # the check says what differs
            until(lambda: not compare_databases(shop_db, copy_db).differences, query)
        query.stop()
        table = filled(directory, "table.toml", SECOND=second)
        run_tables(spark, table, once=True)
        verdict = compare_databases(shop_db, copy_db)
        compare_table(verdict, shop_db, spark, table)
        verdict.windows = audited(spark, mirror, directory / "audit")
    tell(verdict)
    return verdict


@contextmanager
def errors_to(file: Path) -> Iterator[None]:
    """Spark's processes have much to say. Those that start in here say it to a file."""
    ours = os.dup(2)
    with file.open("wb") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def enriched(copy: Postgres) -> int:
    return len(copy.rows("SELECT id FROM orders_enriched"))


def newest(copy: Postgres) -> int:
    return int(max(copy.rows("SELECT coalesce(max(id), 0) FROM orders_enriched"))[0])


def until(done: Callable[[], bool], query: StreamingQuery, seconds: float = 600) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        if failure := query.exception():
            raise failure
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s for changes to arrive")
        time.sleep(0.5)


def tell(verdict: Verdict) -> None:
    for who, rows in verdict.rows.items():
        print(f"{who:24} {rows:6,} rows")
    for state, windows in verdict.windows.items():
        print(f"windows of the audit     {windows:6,} {state}")
    print("both databases and the table agree, row by row" if verdict.holds else f"WRONG: {verdict}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT")
    parser.add_argument("--customers", type=int, default=300, help="when the demonstration begins")
    parser.add_argument("--orders", type=int, default=3_000, help="when the demonstration begins")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all that was started is stopped
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        verdict = run(arguments.bootstrap, Path(temporary), arguments.customers, arguments.orders)
    sys.exit(not verdict.holds)
