"""Programs that change a table while it is captured. Every change of a row adds one to its `v`, and no key is
used twice: so the records of a key tell by themselves whether one is missing or there twice."""

from __future__ import annotations

import contextlib
import random
import threading
from typing import Any

import psycopg

from tests.postgres.server import PostgresServer

TABLE = "CREATE TABLE orders (id bigint PRIMARY KEY, v int NOT NULL, note text)"
_IDS = 10**12


class Writers:
    """Changes go on until somebody says `enough`. If `paced`, each transaction waits until it is allowed, so
    that a slow reader is not left behind for good."""

    def __init__(
        self,
        server: PostgresServer,
        database: str,
        seed: int,
        count: int = 3,
        most: int = 10**9,
        *,
        paced: bool = False,
    ) -> None:
        self._server, self._database = server, database
        self._allowed = threading.Semaphore(0) if paced else None
        self.transactions = 0
        self.failures: list[BaseException] = []
        self._most = most
        self._enough = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=[random.Random(seed * 100 + each)])
            for each in range(count)
        ]

    def __enter__(self) -> Writers:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        assert not self.failures, self.failures

    def allow(self, transactions: int) -> None:
        assert self._allowed is not None
        self._allowed.release(transactions)

    def enough(self) -> None:
        self._enough.set()
        if self._allowed is not None:
            self._allowed.release(len(self._threads))

    def stop(self) -> None:
        self.enough()
        for each in self._threads:
            each.join()

    def _run(self, chance: random.Random) -> None:
        try:
            with contextlib.closing(self._server.connect(self._database, autocommit=False)) as connection:
                done = 0
                while not self._is_over(done):
                    with contextlib.suppress(psycopg.errors.DeadlockDetected):
                        self._transaction(connection, chance)
                    connection.rollback()
                    done += 1
                    self.transactions += 1
        except BaseException as error:
            self.failures.append(error)

    def _is_over(self, done: int) -> bool:
        if self._allowed is not None and not self._enough.is_set():
            self._allowed.acquire()
        return self._enough.is_set() or done >= self._most

    def _transaction(self, connection: psycopg.Connection[Any], chance: random.Random) -> None:
        for _ in range(chance.choice((1, 1, 2, 5, 20))):
            if chance.random() < 0.2:
                with contextlib.suppress(_Taken), connection.transaction():
                    self._change(connection, chance)
                    if chance.random() < 0.5:
                        raise _Taken
            else:
                self._change(connection, chance)
            if chance.random() < 0.1:
                self._enough.wait(chance.random() * 0.1)  # transactions overlap
        if chance.random() < 0.9:
            connection.commit()

    def _change(self, connection: psycopg.Connection[Any], chance: random.Random) -> None:
        at, what = chance.randrange(_IDS), chance.random()
        near = "(SELECT id FROM orders WHERE id >= %s ORDER BY id LIMIT 1)"
        if what < 0.35:
            connection.execute(
                "INSERT INTO orders VALUES (%s, 0, %s) ON CONFLICT DO NOTHING", [at, "n" * (at % 50)]
            )
        elif what < 0.8:
            connection.execute(f"UPDATE orders SET v = v + 1 WHERE id = {near}", [at])
        elif what < 0.9:
            connection.execute(
                "UPDATE orders SET v = v + 1 WHERE id BETWEEN %s AND %s", [at, at + _IDS // 100]
            )
        else:
            connection.execute(f"DELETE FROM orders WHERE id = {near}", [at])


class _Taken(Exception):
    """Back to the savepoint."""


def fill(connection: psycopg.Connection[Any], rows: int) -> None:
    connection.execute(TABLE)
    connection.execute(
        "INSERT INTO orders SELECT n::bigint * %s, 0, 'first' FROM generate_series(0, %s) n",
        [_IDS // rows, rows - 1],
    )


def check_histories(events: list[tuple[dict[str, Any], dict[str, Any] | None]]) -> dict[str, int]:
    """Raises AssertionError where a key's records have a gap or an overlap. How many of each kind there
    are."""
    last: dict[int, int | None] = {}
    kinds: dict[str, int] = {}
    for key, value in events:
        row = key["id"]
        if value is None:
            assert last[row] is None, f"a tombstone of {row} without a delete"
            continue
        op = value["op"]
        kinds[op] = kinds.get(op, 0) + 1
        if op in ("r", "c"):
            assert row not in last, f"{row} begins twice, with {op}"
            last[row] = value["after"]["v"]
            assert op == "r" or last[row] == 0, f"{row} begins in the middle: {value}"
        elif op == "u":
            before = last.get(row)
            assert before is not None, f"{row} changes and is not there: {value}"
            assert value["after"]["v"] == before + 1, f"{row} goes from {before} to {value}"
            last[row] = value["after"]["v"]
        else:
            assert last.get(row) is not None, f"{row} is deleted and is not there"
            last[row] = None
    return kinds
