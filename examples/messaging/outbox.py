"""The effect of a job, here a row in SQLite. The job's id makes it happen once, however often it is tried."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from jobs import Job


class Refused(Exception):
    """The mail server did not take it. It may do so later."""


class Outbox:
    def __init__(self, file: Path) -> None:
        self._database = sqlite3.connect(
            file, timeout=30, isolation_level=None
        )  # every statement is committed
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS sent (job TEXT PRIMARY KEY, worker TEXT)")
        self._database.execute("CREATE TABLE IF NOT EXISTS repeated (job TEXT, worker TEXT)")

    def send(self, job: Job, attempt: int, worker: str) -> None:
        """Where the effect is another system's, give it the job's id: some call it the idempotency key."""
        time.sleep(0.005)  # the mail server thinks
        if attempt <= job.refusals:
            raise Refused(f"mail server said 451 to {job.id}")
        done = self._database.execute("INSERT OR IGNORE INTO sent VALUES (?, ?)", (job.id, worker))
        if not done.rowcount:
            self._database.execute("INSERT INTO repeated VALUES (?, ?)", (job.id, worker))

    def sent(self) -> list[str]:
        return [job for (job,) in self._database.execute("SELECT job FROM sent")]

    def shares(self) -> dict[str, int]:
        """How many each worker did."""
        return dict(
            self._database.execute("SELECT worker, count(*) FROM sent GROUP BY worker ORDER BY worker")
        )

    def repeated(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM repeated").fetchone()[0])

    def close(self) -> None:
        self._database.close()
