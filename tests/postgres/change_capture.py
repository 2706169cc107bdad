"""Changes of a database through workers that are killed, into a topic and from there into another table.

    python -m tests.postgres.change_capture --changes 1000000 --kills 10

Others write all the time. At the end the topic has each row's whole history once, the table that is made of
the topic equals Postgres' row by row, and so does the table that the sink wrote. The slot's lag is shown.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from headrace.spark import jars
from headrace.testing.connect import Workers
from tests.apache_kafka import CACHE
from tests.broker_process import HeadraceProcess
from tests.postgres.following import end_of, is_there
from tests.postgres.rebuilt import events_of, table_of
from tests.postgres.server import PostgresServer, running_postgres
from tests.postgres.writers import Writers, check_histories, fill

TOPIC = "shop.public.orders"
PATIENCE_SECONDS = 3600
_LARGE_TRANSACTION = 100
Db = psycopg.Connection[Any]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--changes", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=100_000, help="there before the first change")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--writers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    os.environ[jars.DIRECTORY_VARIABLE] = str(CACHE / "spark-jars")
    with tempfile.TemporaryDirectory(prefix="change-capture-") as name, running_postgres() as postgres:
        folder = Path(name)
        with HeadraceProcess(folder / "broker", {}) as broker, postgres.connect() as db:
            fill(db, given.rows)
            db.execute("CREATE SCHEMA copy")
            db.execute("CREATE TABLE copy.orders (LIKE public.orders INCLUDING ALL)")
            (folder / "workers").mkdir()
            with Workers(folder / "workers", broker.bootstrap) as workers:
                outcome = _run(given, postgres, db, workers)
    print(json.dumps(outcome))
    return 0 if outcome["equal"] and outcome["sink equal"] else 1


def _run(given: argparse.Namespace, postgres: PostgresServer, db: Db, workers: Workers) -> dict[str, Any]:
    began = time.monotonic()
    address = {
        "database.hostname": "127.0.0.1",
        "database.port": str(postgres.port),
        "database.user": "owner",
        "database.dbname": "postgres",
        "poll.interval.ms": "200",
    }
    source = {
        "connector.class": "postgres-changes",
        "table.include.list": "public.orders",
        "topic.prefix": "shop",
        "snapshot.chunk.rows": str(max(100, given.rows // 10)),
        "tasks.max": "2",
    }
    sink = {"connector.class": "postgres-sink", "topics": TOPIC, "table.name.format": "copy.orders"}
    lags = [0]
    with Writers(postgres, "postgres", given.seed, given.writers, paced=True) as writers:
        workers.put("orders", {**address, **source})
        workers.put("copy", {**address, **sink})
        killed = 0
        while killed < given.kills or _changes(db) < given.changes:
            time.sleep(1)
            lags.append(_lag(db))
            left = given.changes * (killed + 1) // (given.kills + 1) - _changes(db)
            # No more than the round is to have: on a slow machine they write faster than anybody reads.
            writers.allow(max(1, left // _LARGE_TRANSACTION))
            if left <= 0 and killed < given.kills:
                # Not before the last one has shown that it works.
                _until_it_moves(db, workers, writers)
                workers.kill()
                workers.add()
                killed += 1
                _say(f"killed {killed}", began, db)
        writers.stop()
    changes = _changes(db)
    _say("the writers are done", began, db)
    end = end_of(db)
    patience = time.monotonic() + PATIENCE_SECONDS
    while not is_there(workers, "orders", end):
        assert time.monotonic() < patience, "all rows and changes to be there"
        time.sleep(1)
    _say("all is published", began, db)
    rows = {f'{{"id": {i}}}': {"id": i, "v": v, "note": n} for i, v, n in db.execute("TABLE public.orders")}
    events = events_of(workers.records(TOPIC))
    kinds = check_histories(events)
    one, other = "TABLE public.orders", "TABLE copy.orders"
    different = f"({one} EXCEPT {other}) UNION ALL ({other} EXCEPT {one})"
    patience = time.monotonic() + PATIENCE_SECONDS
    while db.execute(different).fetchone() and time.monotonic() < patience:
        time.sleep(1)
    sink_equal = not db.execute(different).fetchone()
    return {
        "changes": changes,
        "kills": killed,
        "records": len(events),
        "kinds": kinds,
        "rows": len(rows),
        "equal": table_of(events) == rows,
        "sink equal": sink_equal,
        "largest lag of the slot in MB": round(max(lags) / 1e6, 1),
        "minutes": round((time.monotonic() - began) / 60, 1),
    }


def _changes(db: Db) -> int:
    """As Postgres counts them, a moment late; rolled back ones among them."""
    found = db.execute(
        "SELECT n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables "
        "WHERE relid = 'public.orders'::regclass"
    ).fetchone()
    return int(found[0]) if found else 0


def _lag(db: Db) -> int:
    query = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) FROM pg_replication_slots"
    found = db.execute(query).fetchone()
    return int(found[0]) if found else 0


def _until_it_moves(db: Db, workers: Workers, writers: Writers) -> None:
    query = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE confirmed_flush_lsn IS NOT NULL"
    place = workers.wait(lambda: db.execute(query).fetchone(), "the slot")
    until = time.monotonic() + PATIENCE_SECONDS
    moved = "SELECT 1 FROM pg_replication_slots WHERE confirmed_flush_lsn > %s::pg_lsn"
    while not db.execute(moved, place).fetchone():
        assert time.monotonic() < until, f"the slot stays at {place[0]}"
        writers.allow(1)  # somebody has to write, or there is nothing to move for
        time.sleep(0.5)


def _say(what: str, began: float, db: Db) -> None:
    seconds = time.monotonic() - began
    print(
        f"{seconds:6.0f} s: {what}; {_changes(db)} changes, {_lag(db) / 1e6:.0f} MB behind",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
