"""Visitors click while the job runs and is killed; it goes on, and every visit must be there once."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import job
from check import Verdict, check
from clicks import VISITS, create_topics, day, last_click, send
from confluent_kafka import Consumer, TopicPartition

from headrace.spark import session


def run(bootstrap: str, directory: Path, visitors: int, seconds: float) -> Verdict:
    create_topics(bootstrap)
    checkpoint = str(directory / "checkpoint")
    clicks = day(visitors, minutes=120, begin_ms=int(time.time() * 1000) - 3 * 3_600_000)
    with ThreadPoolExecutor(1) as pool:
        with errors_to(directory / "killed.log"):
            driver = start_driver(bootstrap, checkpoint)
        try:
            until(lambda: driver.poll() is None and Path(checkpoint, "offsets", "0").exists())
            sending = pool.submit(send, bootstrap, clicks, seconds)
            until(lambda: visits_in(bootstrap) > 0)
            time.sleep(2)  # in the middle of some batch
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
        print("the driver was killed while it wrote visits")
        with errors_to(directory / "spark.log"):
            spark = session("visits", warehouse=directory / "warehouse", extra=job.SETTINGS)
        sending.result()
    send(bootstrap, [last_click(clicks)], 0)
    print("a new driver goes on where the checkpoint says, to the end")
    job.start(spark, bootstrap, checkpoint, until_end=True).awaitTermination()
    verdict = check(spark, bootstrap)
    spark.stop()
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


def start_driver(bootstrap: str, checkpoint: str) -> subprocess.Popen[bytes]:
    """In a process group of its own, with its JVM: so both can be killed at once."""
    return subprocess.Popen([sys.executable, "job.py", bootstrap, checkpoint], start_new_session=True)


def visits_in(bootstrap: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "demo"})
    ends = [
        consumer.get_watermark_offsets(TopicPartition(VISITS, partition), 30)[1] for partition in range(3)
    ]
    consumer.close()
    return sum(ends)


def until(done: object, seconds: float = 150) -> None:
    assert callable(done)
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.2)


def tell(verdict: Verdict) -> None:
    print(f"clicks in the log         {verdict.clicks:7,}")
    print(f"visits by a batch over it {verdict.expected:7,}")
    print(f"visits in the topic       {verdict.visits:7,}")
    print("the stream has every visit once, and no other" if verdict.holds else f"WRONG: {verdict}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT")
    parser.add_argument("--visitors", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=15, help="in which they click")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        verdict = run(arguments.bootstrap, Path(temporary), arguments.visitors, arguments.seconds)
    sys.exit(not verdict.holds)
