"""Sends jobs, lets three workers share them, kills one, and checks what became of every job."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from check import Verdict, check
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from jobs import ATTEMPTS, GROUP, JOBS, Job, arrived, create_topics
from outbox import Outbox


def jobs(count: int) -> list[Job]:
    """Of ten jobs one is refused once, one in twenty is refused twice, and one in fifty always."""
    return [
        Job(
            f"invoice-{n}",
            refusals=ATTEMPTS if n % 50 == 7 else 2 if n % 20 == 3 else 1 if n % 10 == 1 else 0,
        )
        for n in range(count)
    ]


def send(bootstrap: str, all_jobs: list[Job]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "on_delivery": arrived})
    for job in all_jobs:
        producer.produce(JOBS, job.encode(), job.id)
    if producer.flush(60):
        raise RuntimeError("not every job was acknowledged")


def start(bootstrap: str, file: Path, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "worker.py", bootstrap, str(file), name])


def run(bootstrap: str, directory: Path, count: int) -> Verdict:
    create_topics(bootstrap)
    outbox = Outbox(directory / "outbox.db")
    workers = {name: start(bootstrap, directory / "outbox.db", name) for name in ("ann", "ben", "cleo")}
    try:
        until(lambda: sharing(bootstrap) == len(workers), "every worker has partitions")
        send(bootstrap, jobs(count))
        print(f"{count} jobs are sent, {len(workers)} workers share them")
        until(lambda: outbox.shares().get("ben", 0) >= count // 20, "ben has done a part of them")
        workers["ben"].kill()
        workers["ben"].wait()
        print(f"ben was killed in the middle of his work, after {outbox.shares()['ben']} jobs; dora begins")
        workers["dora"] = start(bootstrap, directory / "outbox.db", "dora")
        hopeless = sum(job.refusals >= ATTEMPTS for job in jobs(count))
        until(lambda: len(outbox.sent()) == count - hopeless, "every job that can be done is done")
        until(lambda: check(bootstrap, outbox).dead == hopeless, "the others are dead letters")
    finally:
        for worker in workers.values():
            worker.terminate()
        for worker in workers.values():
            worker.wait(60)
    verdict = check(bootstrap, outbox)
    tell(verdict, outbox)
    outbox.close()
    return verdict


def sharing(bootstrap: str) -> int:
    """How many workers have been given partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    group = admin.describe_consumer_groups([GROUP])[GROUP].result(30)
    return sum(bool(member.assignment.topic_partitions) for member in group.members)


def until(done: Callable[[], bool], what: str, seconds: float = 150) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} seconds: {what}")
        time.sleep(0.1)


def tell(verdict: Verdict, outbox: Outbox) -> None:
    shares = ", ".join(f"{name} {done}" for name, done in outbox.shares().items())
    print(f"sent once            {verdict.sent:6}   ({shares})")
    print(f"dead letters         {verdict.dead:6}   (refused {ATTEMPTS} times)")
    print(f"jobs                 {verdict.jobs:6}")
    print(f"done again, no harm  {outbox.repeated():6}   (whoever had done them could not say so any more)")
    print("every job was done once or is a dead letter" if verdict.holds else f"WRONG: {verdict}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True, metavar="HOST:PORT")
    parser.add_argument("--jobs", type=int, default=3000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(not run(arguments.bootstrap, Path(temporary), arguments.jobs).holds)
