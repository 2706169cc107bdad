"""A view is wrong. Its next version is built from the first record, beside it, while orders come in."""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from check import Verdict, check
from orders import ORDERS, Shop, create_topic
from views import Views

from headrace.spark import session

#: For one machine and little data.
SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class Reader(threading.Thread):
    """Somebody who looks at the current view all the time: he must never see it gone, or go back."""

    def __init__(self, views: Views) -> None:
        super().__init__(daemon=True)
        self.views, self.closed = views, threading.Event()
        self.looks, self.seen, self.went_back = 0, 0, False

    def run(self) -> None:
        while not self.closed.wait(0.5):
            orders = self.views.orders_in(self.views.current())
            self.went_back |= orders < self.seen
            self.looks, self.seen = self.looks + 1, orders


def run(views: Views, history: int) -> bool:
    create_topic(views.bootstrap)
    shop, closed = Shop(views.bootstrap), threading.Event()
    shop.send(history)
    print(f"{shop.sent:,} orders are in the log, and it keeps them for ever")
    old = views.start("v1")
    until(lambda: views.orders_in("v1") >= history)
    views.switch("v1")
    reader = Reader(views)
    reader.start()
    with ThreadPoolExecutor(1) as pool:
        selling = pool.submit(shop.stay_open, closed)
        try:
            print(f"readers see v1 with {views.orders_in('v1'):,} orders; v2 begins at the first record")
            new = views.start("v2")
            until(lambda: views.orders_in("v2") >= history)
            old.stop()
            last = views.orders_in("v1")
            until(lambda: views.orders_in("v2") >= last)
            views.switch("v2")
            print(
                f"v2 has {views.orders_in('v2'):,} orders, v1 stopped at {last:,}: readers see v2 from now on"
            )
            until(lambda: reader.seen > last)
        finally:
            closed.set()
        selling.result()
    new.processAllAvailable()
    new.stop()
    reader.closed.set()
    reader.join()
    # Whoever had to switch back would find v1 where it stopped; here it is brought up to be checked as well.
    views.start("v1", until_end=True).awaitTermination()
    verdict = check(views, shop.sent)
    tell(verdict, reader)
    return verdict.holds and not reader.went_back


def until(done: object, seconds: float = 150) -> None:
    assert callable(done)
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.5)


def tell(verdict: Verdict, reader: Reader) -> None:
    print("product   orders   v1 revenue   v2 revenue")
    for product, (orders, cents) in sorted(verdict.found["v2"].items()):
        wrong = verdict.found["v1"].get(product, (0, 0))[1]
        print(f"{product:8} {orders:7,} {wrong / 100:12,.2f} {cents / 100:12,.2f}")
    print(f"orders sent        {verdict.sent:9,}")
    print(f"orders in {ORDERS}   {verdict.in_log:9,}   (first offsets {verdict.first_offsets})")
    back = "WENT BACK" if reader.went_back else "never went back"
    print(f"looks of a reader  {reader.looks:9,}   (the view {back})")
    print("both versions are what the log says" if verdict.holds else f"WRONG: {verdict}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT")
    parser.add_argument("--history", type=int, default=50_000, help="orders before the demonstration begins")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        spark = session("revenue", warehouse=Path(temporary, "warehouse"), extra=SETTINGS)
        spark.sparkContext.setLogLevel("ERROR")
        holds = run(Views(spark, arguments.bootstrap, Path(temporary)), arguments.history)
        spark.stop()
    sys.exit(not holds)
