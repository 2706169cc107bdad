"""Debezium for MariaDB on Apache's Connect, all unchanged, on Headrace: the worker is killed while it copies
and while it follows, and every row comes.

    python -m tests.compatibility.debezium_mariadb --rows 20000

It needs `mariadbd`, `mariadb-install-db` and MariaDB's own client (Debian: mariadb-server-core,
mariadb-client-core), and brings Debezium's jars by Maven once. It prints, as JSON, how many rows a reader of
committed records has seen, and how many of their records once more. It fails if a row is missing, or if with
exactly-once support a row that was inserted later is there twice. A copy that is interrupted begins anew, so
its rows come again: that is Debezium's way, on every broker.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.apache_connect import ConnectWorker
from tests.apache_kafka import CACHE, CHECKOUT
from tests.both_brokers import TARGETS
from tests.ports import own_port

POM: Final = CHECKOUT / "third_party_clients" / "debezium" / "mariadb.pom.xml"
TOPIC: Final = "shop.shop.orders"
TIMEOUT_S: Final = 1_800.0
AT_ONCE: Final = 500


class MariaDb:
    """With a log of rows, of an ordinary user and on a free port."""

    def __init__(self, folder: Path) -> None:
        self.port = own_port()
        self._folder = folder
        self._socket = folder / "socket"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        data = self._folder / "data"
        base = Path(_program("mariadbd")).parents[1]
        user = f"--user={getpass.getuser()}"
        made = [f"--basedir={base}", f"--datadir={data}", "--auth-root-authentication-method=normal", user]
        subprocess.run(
            [_program("mariadb-install-db"), "--no-defaults", *made], check=True, capture_output=True
        )
        command = [
            *(_program("mariadbd"), "--no-defaults", f"--basedir={base}", f"--datadir={data}", user),
            *(f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self._socket}"),
            *("--log-bin=binlog", "--binlog-format=ROW", "--binlog-row-image=FULL", "--server-id=1"),
        ]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + TIMEOUT_S
        while True:
            try:
                self.run("SELECT 1")
                return
            except RuntimeError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise AssertionError((self._folder / "log").read_text()[-4000:]) from None
                time.sleep(0.2)

    def run(self, *statements: str) -> None:
        command = [_program("mariadb"), "--no-defaults", f"--socket={self._socket}", "--user=root"]
        done = subprocess.run(
            command, input=";\n".join(statements).encode(), capture_output=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr.decode())

    def insert(self, first: int, count: int) -> None:
        begins = range(first, first + count, AT_ONCE)
        self.run(
            *(
                f"INSERT INTO shop.orders SELECT seq, CONCAT('note ', seq) FROM shop.seq_{at}_to_"
                f"{min(at + AT_ONCE, first + count) - 1}"
                for at in begins
            )
        )

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Reader:
    def __init__(self, bootstrap: str) -> None:
        self.seen: Counter[int] = Counter()
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 2,
        }
        self._consumer = Consumer(settings)
        self._consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])

    def until(self, rows: int, worker: ConnectWorker) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while len(self.seen) < rows:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(self.seen):,} of {rows:,} rows arrived\n{worker.tail()}")
            for message in self._consumer.consume(1_000, 0.2):
                if message.error() is None:
                    self.seen[json.loads(message.value() or b"")["after"]["id"]] += 1


def measure(rows: int, folder: Path, *, exactly_once: bool) -> dict[str, Any]:
    with ExitStack() as stack:
        database = MariaDb(folder)
        stack.callback(database.stop)
        database.start()
        database.run(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, note VARCHAR(40))",
            "CREATE USER capture@'127.0.0.1' IDENTIFIED BY 'capture'",
            "GRANT ALL ON *.* TO capture@'127.0.0.1'",
        )
        database.insert(0, rows)
        broker = stack.enter_context(TARGETS["headrace"](folder / "broker", {}))
        support = {"exactly.once.source.support": "enabled" if exactly_once else "disabled"}
        worker = ConnectWorker(folder / "worker", broker.bootstrap, support)
        worker.plugin_path = _plugin()
        stack.enter_context(worker)
        answer = worker.call(
            "PUT", "/connectors/orders/config", _config(database, broker.bootstrap, exactly_once=exactly_once)
        )
        if answer.status != 201:
            raise RuntimeError(f"Connect refuses the connector: {answer.body}")
        reader = Reader(broker.bootstrap)
        kills = 0
        for phase in range(2):
            reader.until(phase * rows + rows // 5, worker)
            worker.kill()
            kills += 1
            worker.start()
            worker.wait_ready()
            reader.until((phase + 1) * rows, worker)
            if phase == 0:
                database.insert(rows, rows)
        again = {"copied": 0, "followed": 0}
        for row, count in reader.seen.items():
            again["copied" if row < rows else "followed"] += count - 1
        return {"rows": len(reader.seen), "kills": kills, "exactly_once": exactly_once, "again": again}


def _config(database: MariaDb, bootstrap: str, *, exactly_once: bool) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "tasks.max": "1",
        "database.hostname": "127.0.0.1",
        "database.port": str(database.port),
        "database.user": "capture",
        "database.password": "capture",
        "database.server.id": "5401",
        "database.ssl.mode": "disable",
        "database.include.list": "shop",
        "topic.prefix": "shop",
        "schema.history.internal.kafka.bootstrap.servers": bootstrap,
        "schema.history.internal.kafka.topic": "shop-schema-history",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "exactly.once.support": "required" if exactly_once else "requested",
    }


def _plugin() -> Path:
    """The directory for `plugin.path`."""
    directory = CACHE / "debezium-mariadb-3.5.0"
    if not (directory / ".ok").exists():
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={directory / 'mariadb'}"]
        subprocess.run(["mvn", "-q", "-B", "-f", str(POM), *copy, "-DincludeScope=runtime"], check=True)
        (directory / ".ok").touch()
    return directory


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        raise SystemExit(f"{name} is missing: apt-get install mariadb-server-core mariadb-client-core")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="copied, and then inserted")
    parser.add_argument("--at-least-once", action="store_true", help="without exactly-once support")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="debezium-") as folder:
        found = measure(given.rows, Path(folder), exactly_once=not given.at_least_once)
    print(json.dumps(found))
    return (
        0
        if found["rows"] == 2 * given.rows and (given.at_least_once or not found["again"]["followed"])
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
