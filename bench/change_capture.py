"""What change capture from Postgres costs: `headrace connect` beside Debezium on Apache's Connect.

    python -m bench.change_capture --rows 200000 --runs 3
    python -m bench.change_capture --only debezium --target kafka --at-least-once

A table of so many rows is copied first (`snapshot`), then as many rows are inserted, a thousand in each
transaction, while the connector runs (`stream`). A phase ends when a reader of committed records has seen all
of its rows. Each run has a Postgres, a broker and a worker of its own, and the two take turns. Counted is the
CPU of the worker with all below it, of the broker, and of all of Postgres, that of the inserts with it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from tests.apache_kafka import CACHE
from tests.both_brokers import TARGETS
from tests.postgres.server import running_postgres

from bench.capturers import TABLE, Capturer, Debezium, Ours
from bench.process_cost import cpu_seconds
from bench.spark_runs import keep
from bench.topics import Topics
from headrace.spark import jars

AT_ONCE: Final = 1_000
TIMEOUT_S: Final = 1_800.0
CAPTURERS: Final = ("headrace", "debezium")
COLUMNS: Final = "id bigint primary key, customer text, amount numeric(12, 2), note text, at timestamptz"
ROWS: Final = (
    "insert into orders select n, 'customer ' || n % 1000, n / 100.0, repeat('x', 60), now() "
    "from generate_series({first}, {last}) n"
)


@dataclass
class Phase:
    capturer: str
    name: str
    rows: int
    seconds: float
    worker_cpu_s: float
    postgres_cpu_s: float
    broker_cpu_s: float

    @property
    def rows_per_cpu_second(self) -> float:
        return self.rows / self.worker_cpu_s

    def line(self) -> str:
        return (
            f"{self.capturer}, {self.name}: {self.rows:,} rows in {self.seconds:.1f} s, CPU: worker "
            f"{self.worker_cpu_s:.1f} s, Postgres {self.postgres_cpu_s:.1f} s, broker "
            f"{self.broker_cpu_s:.1f} s; {self.rows_per_cpu_second:,.0f} rows a CPU second of the worker"
        )


class Reader:
    """Counts committed records. It never reads anything twice."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.seen = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 2,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])

    def wait_for(self, total: int, capturer: Capturer) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        asked = time.monotonic()
        while self.seen < total:
            found = sum(message.error() is None for message in self._consumer.consume(5_000, 0.1))
            self.seen += found
            if found or time.monotonic() < asked + 5:
                continue
            asked = time.monotonic()
            complaint = capturer.complaint()
            if complaint is not None or asked > deadline:
                raise RuntimeError(f"{self.seen:,} of {total:,} rows arrived\n{complaint or ''}")

    def close(self) -> None:
        self._consumer.close()


def run(kind: str, options: argparse.Namespace, directory: Path) -> list[Phase]:
    rows: int = options.rows
    with (
        TARGETS[options.target](directory / "broker", {}) as broker,
        running_postgres() as server,
        server.connect() as db,
    ):
        db.execute(f"create table orders ({COLUMNS})")
        _insert(db, 0, rows)
        capturer: Capturer
        if kind == "headrace":
            capturer = Ours(directory / "worker", broker.bootstrap)
        else:
            capturer = Debezium(
                directory / "worker", broker.bootstrap, exactly_once=not options.at_least_once
            )
        topic = f"{capturer.prefix}.{TABLE}"
        Topics(broker.bootstrap).create(topic)
        reader = Reader(broker.bootstrap, topic)
        database = {
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": "owner",
            "database.password": "none",
            "database.dbname": "postgres",
        }

        def costs() -> tuple[float, float, float, float]:
            return time.monotonic(), capturer.cpu_s(), cpu_seconds(server.pid), cpu_seconds(broker.pid)

        def phase(name: str, do: Callable[[], None], total: int) -> Phase:
            before = costs()
            do()
            reader.wait_for(total, capturer)
            seconds, *cpu = (after - then for then, after in zip(before, costs(), strict=True))
            return Phase(kind, name, rows, seconds, *cpu)

        with capturer:
            found = [phase("snapshot", lambda: capturer.begin(database), rows)]
            time.sleep(2)  # what begins to stream belongs to neither
            found.append(phase("stream", lambda: _insert(db, rows, rows), 2 * rows))
        reader.close()
        return found


def _insert(db: psycopg.Connection[tuple[object, ...]], first: int, count: int) -> None:
    for at in range(first, first + count, AT_ONCE):
        db.execute(ROWS.format(first=at, last=min(at + AT_ONCE, first + count) - 1).encode())


def table(phases: Sequence[Phase]) -> str:
    """Medians of all runs."""
    lines = ["| | rows/s | for each CPU second | CPU of Postgres | of the broker |", "|---|--:|--:|--:|--:|"]
    for capturer, name in dict.fromkeys((each.capturer, each.name) for each in phases):
        same = [each for each in phases if (each.capturer, each.name) == (capturer, name)]
        cells = (
            f"{statistics.median(each.rows / each.seconds for each in same):,.0f}",
            f"{statistics.median(each.rows_per_cpu_second for each in same):,.0f}",
            f"{statistics.median(each.postgres_cpu_s for each in same):.1f} s",
            f"{statistics.median(each.broker_cpu_s for each in same):.1f} s",
        )
        lines.append(f"| {capturer}, {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000, help="of each phase")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", choices=CAPTURERS)
    parser.add_argument("--target", choices=list(TARGETS), default="headrace", help="the broker to start")
    parser.add_argument(
        "--at-least-once", action="store_true", help="Debezium's worker; ours always is exact"
    )
    parser.add_argument("--json", type=Path, help="also write the figures there")
    options = parser.parse_args()
    os.environ[jars.DIRECTORY_VARIABLE] = str(CACHE / "spark-jars")
    phases: list[Phase] = []
    for number in range(options.runs):
        for kind in (options.only,) if options.only else CAPTURERS:
            with tempfile.TemporaryDirectory(prefix="bench-capture-") as directory:
                for one in run(kind, options, Path(directory)):
                    sys.stdout.write(f"run {number}: {one.line()}\n")
                    sys.stdout.flush()
                    phases.append(one)
    sys.stdout.write(table(phases) + "\n")
    keep(phases, options.json)


if __name__ == "__main__":
    main()
