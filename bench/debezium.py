"""What change capture from Postgres costs with Debezium 3.6.1 on Apache's Connect 4.3.1.

    python -m bench.debezium --rows 200000
    python -m bench.debezium --rows 200000 --target kafka --exactly-once
    python -m bench.debezium --bootstrap 127.0.0.1:9092 --postgres 127.0.0.1:5432

A table of so many rows is copied first (`snapshot`), then as many rows are inserted, a thousand in each
transaction, while the connector runs (`stream`). A phase ends when a reader of committed records has seen all
of its rows. Counted is the CPU of the worker's process, of Postgres' process that decodes its log for the
worker, and of the broker. Without --bootstrap and --postgres both are started here, otherwise only the worker
is counted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from tests.apache_connect import ConnectWorker
from tests.apache_kafka import CACHE, CHECKOUT
from tests.both_brokers import TARGETS
from tests.postgres.server import running_postgres

from bench.process_cost import cpu_seconds
from bench.topics import Topics

POM: Final = CHECKOUT / "third_party_clients" / "debezium" / "pom.xml"
TOPIC: Final = "bench.public.orders"
AT_ONCE: Final = 1_000
TIMEOUT_S: Final = 1_800.0
DATABASE: Final = "postgres"
COLUMNS: Final = "id bigint primary key, customer text, amount numeric(12, 2), note text, at timestamptz"
ROWS: Final = (
    "insert into orders select n, 'customer ' || n % 1000, n / 100.0, repeat('x', 60), now() "
    "from generate_series({first}, {last}) n"
)


@dataclass
class Phase:
    name: str
    rows: int
    seconds: float
    worker_cpu_s: float
    decoder_cpu_s: float | None
    broker_cpu_s: float | None

    @property
    def rows_per_cpu_second(self) -> float:
        return self.rows / self.worker_cpu_s

    def line(self) -> str:
        others = "".join(
            f", {name} {value:.1f} s"
            for name, value in (("decoder", self.decoder_cpu_s), ("broker", self.broker_cpu_s))
            if value is not None
        )
        return (
            f"{self.name}: {self.rows:,} rows in {self.seconds:.1f} s, CPU: worker {self.worker_cpu_s:.1f} s"
            f"{others}; {self.rows_per_cpu_second:,.0f} rows for each CPU second of the worker"
        )


def plugin() -> Path:
    """The directory for `plugin.path`. Debezium's jars come from Maven Central once."""
    directory = CACHE / "debezium-3.6.1"
    if not (directory / ".ok").exists():
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={directory / 'postgres'}"]
        command = ["mvn", "-q", "-B", "-f", str(POM), *copy, "-DincludeScope=runtime"]
        subprocess.run(command, check=True)
        (directory / ".ok").touch()
    return directory


class Postgres:
    """A server of our own, or one that runs already."""

    def __init__(self, address: str, user: str, *, is_ours: bool) -> None:
        self.host, _, port = address.partition(":")
        self.port = int(port)
        self.user = user
        self.is_ours = is_ours
        self._connection = psycopg.connect(
            host=self.host, port=self.port, user=user, dbname=DATABASE, autocommit=True
        )

    def run(self, *statements: str) -> None:
        for statement in statements:
            self._connection.execute(statement.encode())

    def insert(self, first: int, count: int) -> None:
        begins = range(first, first + count, AT_ONCE)
        self.run(*(ROWS.format(first=at, last=min(at + AT_ONCE, first + count) - 1) for at in begins))

    def close(self) -> None:
        self._connection.close()

    def decoder_cpu_s(self) -> float | None:
        """Of the process that sends its log to the worker. Its number is only known on this machine."""
        if not self.is_ours:
            return None
        pids = self._connection.execute("select pid from pg_stat_replication").fetchall()
        return sum(cpu_seconds(pid) for (pid,) in pids)

    def config(self) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "tasks.max": "1",
            "database.hostname": self.host,
            "database.port": str(self.port),
            "database.user": self.user,
            "database.password": os.environ.get("PGPASSWORD", "none"),
            "database.dbname": DATABASE,
            "plugin.name": "pgoutput",
            "slot.name": "bench_debezium",
            "slot.drop.on.stop": "true",
            "publication.autocreate.mode": "filtered",
            "table.include.list": "public.orders",
            "topic.prefix": "bench",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
        }


class Reader:
    """Counts committed records. It never reads anything twice."""

    def __init__(self, bootstrap: str) -> None:
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
        self._consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])

    def wait_for(self, total: int, worker: ConnectWorker) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while self.seen < total:
            if time.monotonic() > deadline or not worker.running:
                raise RuntimeError(f"{self.seen:,} of {total:,} rows arrived\n{worker.tail()}")
            self.seen += sum(message.error() is None for message in self._consumer.consume(5_000, 0.1))


def phase(
    name: str,
    rows: int,
    do: Callable[[], None],
    worker: ConnectWorker,
    postgres: Postgres,
    broker: int | None,
) -> Phase:
    def measured() -> tuple[float, float, float | None, float | None]:
        of_broker = cpu_seconds(broker) if broker is not None else None
        return time.monotonic(), cpu_seconds(worker.pid), postgres.decoder_cpu_s(), of_broker

    before = measured()
    do()
    after = measured()
    wall, cpu, decoder, of_broker = (
        None if a is None or b is None else a - b for a, b in zip(after, before, strict=True)
    )
    assert wall is not None
    assert cpu is not None
    return Phase(name, rows, wall, cpu, decoder, of_broker)


def measure(options: argparse.Namespace, directory: Path) -> list[Phase]:
    rows: int = options.rows
    with ExitStack() as stack:
        bootstrap, broker_pid = options.bootstrap, None
        if bootstrap is None:
            broker = stack.enter_context(TARGETS[options.target](directory / "broker", {}))
            bootstrap, broker_pid = broker.bootstrap, broker.pid
        address = options.postgres
        if address is None:
            address = f"127.0.0.1:{stack.enter_context(running_postgres()).port}"
        postgres = Postgres(address, options.user, is_ours=options.postgres is None)
        stack.callback(postgres.close)
        postgres.run("drop table if exists orders", f"create table orders ({COLUMNS})")
        postgres.insert(0, rows)
        Topics(bootstrap).create(TOPIC)
        support = "enabled" if options.exactly_once else "disabled"
        worker = ConnectWorker(directory / "worker", bootstrap, {"exactly.once.source.support": support})
        worker.plugin_path, worker.fast_start = plugin(), False
        stack.enter_context(worker)
        reader = Reader(bootstrap)

        def snapshot() -> None:
            answer = worker.call("PUT", "/connectors/orders/config", postgres.config())
            if answer.status != 201:
                raise RuntimeError(f"Connect refuses the connector: {answer.body}")
            reader.wait_for(rows, worker)

        def stream() -> None:
            postgres.insert(rows, rows)
            reader.wait_for(2 * rows, worker)

        phases = [phase("snapshot", rows, snapshot, worker, postgres, broker_pid)]
        # The slot's process is there when streaming begins: what it does until then belongs to the snapshot.
        time.sleep(2)
        phases.append(phase("stream", rows, stream, worker, postgres, broker_pid))
        worker.call("DELETE", "/connectors/orders")
        return phases


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000, help="of each phase")
    parser.add_argument("--target", choices=list(TARGETS), default="headrace", help="the broker to start")
    parser.add_argument("--bootstrap", help="a broker that runs, instead")
    parser.add_argument("--postgres", help="HOST:PORT of a server with wal_level=logical")
    parser.add_argument("--user", default="owner", help="of Postgres; its password is in PGPASSWORD")
    parser.add_argument("--exactly-once", action="store_true", help="of the worker's sources")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="debezium-") as directory:
        phases = measure(options, Path(directory))
    for one in phases:
        sys.stdout.write(one.line() + "\n")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(one) for one in phases], indent=1) + "\n")


if __name__ == "__main__":
    main()
