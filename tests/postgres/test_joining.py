"""The copy and the changes are one sequence, while others write and the worker dies at any moment."""

from __future__ import annotations

import json
import os
import random
import threading
from collections import Counter
from typing import Any

import psycopg
import pytest

from tests.postgres.captured import Captured, Died
from tests.postgres.server import PostgresServer, running_postgres
from tests.postgres.writers import TABLE, Writers, check_histories, fill

Db = psycopg.Connection[Any]


def _rows(db: Db) -> dict[str, dict[str, Any]]:
    found = db.execute("SELECT id, v, note FROM orders").fetchall()
    return {f'{{"id": {row[0]}}}': {"id": row[0], "v": row[1], "note": row[2]} for row in found}


@pytest.mark.parametrize("seed", range(int(os.environ.get("HEADRACE_JOIN_SEEDS", "1"))))
def test_no_gap_and_no_overlap_while_others_write_and_workers_die(
    postgres: PostgresServer, database: str, db: Db, captured: Captured, seed: int
) -> None:
    fill(db, 1500)
    captured.set(
        table__include__list="public.orders",
        snapshot__chunk__rows="70",
        tasks__max="2",
        transaction__slice__changes="40",
    )
    chance = random.Random(seed)
    deaths = 0
    so_far = _Kinds(captured)

    def dies(moment: str) -> None:
        nonlocal deaths
        if chance.random() < (0.0005 if moment == "reading" else 0.05):
            deaths += 1
            raise Died(moment)

    with Writers(postgres, database, seed, paced=True) as writers:

        def is_enough() -> bool:
            """By what is there, not by what was written: a slow worker may copy what is changed meanwhile."""
            if writers.transactions <= 400 or deaths < 10:
                return False
            kinds = so_far.kinds()
            return kinds["r"] > 500 and all(kinds[kind] > 20 for kind in ("c", "u", "d"))

        def moment(name: str) -> None:
            """Transactions run between any two of the worker's, and no faster than it takes them."""
            if name != "reading" or chance.random() < 0.02:
                writers.allow(1)
            dies(name)
            if name == "decided" and is_enough():
                writers.enough()

        captured.run(is_enough, dies=moment)
    captured.drain()
    kinds = check_histories(captured.events("public.orders"))
    assert captured.table("public.orders") == _rows(db)
    assert kinds == so_far.kinds()


class _Kinds:
    """How many records of each kind there are. Each record is looked at once."""

    def __init__(self, captured: Captured) -> None:
        self._captured = captured
        self._seen = 0
        self._counts: Counter[str] = Counter()

    def kinds(self) -> Counter[str]:
        more = self._captured.topic[self._seen :]
        self._seen += len(more)
        values = (json.loads(each.value) for each in more if each.topic == "db.public.orders" and each.value)
        self._counts.update(value["op"] for value in values)
        return self._counts


def test_a_transaction_that_was_running_when_the_capture_began(
    postgres: PostgresServer, database: str, db: Db, captured: Captured
) -> None:
    """Its first change is older than the publication, so the stream does not have it: the copy waits."""
    db.execute(TABLE)
    db.execute("CREATE PUBLICATION early FOR TABLE orders")
    captured.set(publication__name="early")
    captured.drain()  # the slot is there
    db.execute("CREATE TABLE later (id bigint PRIMARY KEY, v int)")
    with postgres.connect(database, autocommit=False) as other:
        other.execute("INSERT INTO later VALUES (1, 0)")
        captured.stop()
        captured.set(table__include__list="public.orders,public.later")
        for _ in range(5):
            captured.step()
        other.execute("INSERT INTO later VALUES (2, 0)")
        other.commit()
    captured.drain()
    assert sorted(captured.table("public.later")) == ['{"id": 1}', '{"id": 2}']
    check_histories(captured.events("public.later"))


def test_what_is_not_visible_yet_is_not_passed() -> None:
    """Its commit is in the log, and a standby has not answered: nobody sees it. A copy that was made now
    would not have it, so the stream must not have left it out before."""
    with running_postgres() as server, server.connect() as db:
        fill(db, 100)
        captured = Captured(server.port, "postgres", **{"table.include.list": "public.orders"})
        captured.set(snapshot__chunk__rows="10")
        captured.step()
        db.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        db.execute("SELECT pg_reload_conf()")
        waiting = threading.Thread(target=_update_and_wait, args=[server])
        waiting.start()
        _until_waiting(db)
        for _ in range(30):
            captured.step()
        assert captured.offset()["copied"]["public.orders"] is not None
        db.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        waiting.join()
        captured.drain()
        check_histories(captured.events("public.orders"))
        assert captured.table("public.orders") == _rows(db)
        captured.stop()


def _update_and_wait(server: PostgresServer) -> None:
    with server.connect() as other:
        other.execute("SET synchronous_commit = on")
        other.execute("UPDATE orders SET v = v + 1")


def _until_waiting(db: Db) -> None:
    query = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'UPDATE%'"
    while not db.execute(query).fetchall():
        pass
