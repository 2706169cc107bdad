"""Whether a connector of changes is where Postgres is."""

from __future__ import annotations

from typing import Any

import psycopg

from headrace.connect.postgres.lsn import lsn_of
from headrace.testing.connect import Workers


def end_of(db: psycopg.Connection[Any]) -> int:
    """What is committed now stands before it."""
    return lsn_of(db.execute("SELECT pg_current_wal_flush_lsn()::text").fetchall()[0][0])


def is_there(workers: Workers, connector: str, end: int) -> bool:
    """Everything up to `end` is published, and all tables are copied."""
    found = workers.ask("GET", f"/connectors/{connector}/offsets")["offsets"]
    return all(
        lsn_of(each["offset"]["lsn"]) >= end
        and not each["offset"].get("fresh")
        and all(to is None for to in each["offset"]["copied"].values())
        for each in found
    ) and bool(found)
