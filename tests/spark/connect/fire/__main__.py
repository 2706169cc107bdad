"""Every connector under kill -9 of what it stands on: its worker, Spark's Java process, the processes of its
tasks, the broker, and Postgres. Both ends are compared at the end.

    python -m tests.spark.connect.fire --rounds 20 --seed 1

One worker runs all connectors, so each kill meets all of them in the middle of what a round has given them.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from headrace.spark import jars
from headrace.testing.connect import Workers
from tests.apache_kafka import CACHE
from tests.broker_process import HeadraceProcess
from tests.document_server import DocumentServer
from tests.postgres.server import PostgresServer, running_postgres
from tests.spark.connect.fire.routes import Changes, Files, Orders, Route

PATIENCE_SECONDS = 1800.0
LOOK_SECONDS = 0.5


class Fire:
    def __init__(
        self, workers: Workers, broker: HeadraceProcess, postgres: PostgresServer, chance: random.Random
    ) -> None:
        self._workers = workers
        self._broker = broker
        self._postgres = postgres
        self._chance = chance
        self.kills: dict[str, Callable[[], None]] = {
            "worker": self._kill_worker,
            "Spark's Java process": self._kill_spark,
            "task": self._kill_tasks,
            "broker": self._kill_broker,
            "Postgres": self._kill_postgres,
        }

    def order(self, rounds: int) -> list[str]:
        """Each equally often."""
        found: list[str] = []
        while len(found) < rounds:
            found += self._chance.sample(list(self.kills), len(self.kills))
        return found[:rounds]

    def _kill_worker(self) -> None:
        self._workers.kill()
        self._workers.add()

    def _kill_spark(self) -> None:
        self._workers.workers[0].kill_spark()
        self._workers.ended()
        self._workers.add()

    def _kill_tasks(self) -> None:
        """The Python processes in which Spark runs them. In local mode an executor is in the driver's own."""
        for pid in _tasks(self._workers.workers[0].process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _kill_broker(self) -> None:
        self._broker.kill()
        self._broker.start()

    def _kill_postgres(self) -> None:
        self._postgres.kill()
        self._postgres.start()


def _tasks(worker: int) -> list[int]:
    """Python processes below the worker that run Spark's code."""
    found, parents = [], {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                stat = (entry / "stat").read_text()
                parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes().split(b"\0")
                if b"java" not in command[0] and any(word.startswith(b"pyspark.") for word in command):
                    found.append(int(entry.name))
    return [pid for pid in found if _is_below(pid, worker, parents)]


def _is_below(pid: int, top: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == top:
            return True
    return False


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {PATIENCE_SECONDS:g} s: {what}")
        time.sleep(LOOK_SECONDS)


def _has_moved(route: Route, before: int) -> bool:
    return route.progress() > before


def _run(
    options: argparse.Namespace,
    workers: Workers,
    fire: Fire,
    routes: dict[str, Route],
    chance: random.Random,
) -> list[str]:
    began = time.monotonic()
    for route in routes.values():
        for name, config in route.connectors().items():
            workers.put(name, config)
    for number, kind in enumerate(fire.order(options.rounds), 1):
        before = {name: route.progress() for name, route in routes.items()}
        for route in routes.values():
            route.feed(chance)
        # Not before everything has shown that it works since the kill before.
        for name, route in routes.items():
            _until(partial(_has_moved, route, before[name]), f"{name} to move")
        time.sleep(chance.random())
        left = sum(not route.is_through() for route in routes.values())
        fire.kills[kind]()
        print(
            f"{time.monotonic() - began:6.0f} s: round {number}: {kind} killed, {left} routes in the middle",
            flush=True,
        )
    for name, route in routes.items():
        _until(route.is_through, f"{name} to come to its end")
        print(f"{time.monotonic() - began:6.0f} s: {name} is through", flush=True)
    return [f"{name}: {fault}" for name, route in routes.items() for fault in route.faults()]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    os.environ[jars.DIRECTORY_VARIABLE] = str(CACHE / "spark-jars")
    chance = random.Random(options.seed)
    server = DocumentServer()
    drivers = ("--spark", f"spark.driver.extraClassPath={CACHE / 'jdbc'}/*")
    try:
        with (
            tempfile.TemporaryDirectory(prefix="connect-fire-") as name,
            running_postgres() as postgres,
            HeadraceProcess(Path(name) / "broker") as broker,
        ):
            folder = Path(name)
            orders = Orders(broker.bootstrap, postgres, server)
            routes: dict[str, Route] = {
                "files": Files(folder, broker.bootstrap),
                "changes": Changes(broker.bootstrap, postgres),
                "orders": orders,
            }
            with Workers(folder, broker.bootstrap, arguments=drivers) as workers:
                fire = Fire(workers, broker, postgres, chance)
                faults = _run(options, workers, fire, routes, chance)
            print(f"requests by HTTP that came again: {orders.repeated()}")
    finally:
        server.stop()
    print("\n".join(faults) or "nothing lost, nothing doubled")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
