"""The stream of changes: looked at, published, and then let go.

A look (`pg_logical_slot_peek_binary_changes`) takes nothing from the slot, and two looks up to the same place
see the same bytes. So the worker looks to learn how much there is, a task looks to publish it, and the slot
is advanced when that is decided.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from headrace.connect.api import ConnectorFailure
from headrace.connect.postgres.database import rows, told
from headrace.connect.postgres.lsn import lsn_of, lsn_text
from headrace.connect.postgres.windows import Summary, Transaction

if TYPE_CHECKING:
    from psycopg import Connection

_FETCHED_TOGETHER: Final = 5000
_PATIENCE: Final = 60.0
"""Seconds for whoever else uses the slot: most likely a task that was killed, whose look Postgres has not yet
given up."""
_LOOK: Final = (
    "pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, %s, 'proto_version', '1', 'publication_names', %s)"
)
_SUMMARY: Final = f"""
WITH messages AS MATERIALIZED (
  SELECT xid::text::bigint AS xid, lsn, get_byte(data, 0) AS kind,
    CASE get_byte(data, 0) WHEN 66 THEN encode(substring(data FROM 2 FOR 8), 'hex') END AS commit_at
  FROM {_LOOK}
), transactions AS (
  SELECT xid, max(commit_at) AS commit_at, max(lsn) FILTER (WHERE kind = 67) AS end_at,
    count(*) FILTER (WHERE kind IN (73, 85, 68, 84)) AS changes
  FROM messages GROUP BY xid
), counted AS (
  SELECT *, row_number() OVER (ORDER BY commit_at) AS number, count(*) OVER () AS transactions,
    sum(changes) OVER () AS all_changes,
    xid IN (SELECT running::text::numeric %% 4294967296
            FROM pg_snapshot_xip(pg_current_snapshot()) AS running)
      OR (xid - xmax + 4294967296) %% 4294967296 < 2147483648 AS unseen
  FROM transactions,
    (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::numeric %% 4294967296 AS xmax) AS now
  WHERE changes > 0 AND commit_at >= %s
)
SELECT commit_at, end_at::text, changes, number, transactions, all_changes, unseen,
  (SELECT count(*) FROM messages), (SELECT max(lsn) FILTER (WHERE kind = 67) FROM messages)::text
FROM counted WHERE number = 1 OR number = transactions OR unseen ORDER BY number
"""


class Look:
    """What a look saw."""

    def __init__(self, summary: Summary, end: int, unseen: int | None) -> None:
        self.summary = summary
        self.end = end
        """Up to where it came."""
        self.unseen = unseen
        """Where the first transaction is committed that a new snapshot would not see yet. The stream must not
        pass it."""


class Stream:
    def __init__(self, connection: Connection[Any], slot: str, publication: str) -> None:
        self._connection = connection
        self._slot = slot
        self._publication = '"' + publication.replace('"', '""') + '"'

    def flushed(self) -> int:
        return lsn_of(rows(self._connection, "SELECT pg_current_wal_flush_lsn()::text")[0][0])

    def look(self, start: int, end: int, limit: int) -> Look:
        """Stops with the first commit behind `limit` messages, or at `end`."""
        values = [self._slot, lsn_text(end), limit, self._publication, f"{start:016x}"]
        found = self._patiently(lambda: rows(self._connection, _SUMMARY, values))
        if not found:
            return Look(Summary(0, 0, None, None), end, None)
        first, last = _transaction(found[0]), _transaction(found[-1])
        unseen = [_transaction(each).commit_lsn for each in found if each[6]]
        messages, last_end = found[0][7], found[0][8]
        summary = Summary(found[0][4], int(found[0][5]), first, last)
        return Look(summary, lsn_of(last_end) if messages >= limit else end, min(unseen, default=None))

    def data(self, end: int) -> Iterator[bytes]:
        """pgoutput's messages, which never are in memory all at once."""
        with (
            told("show the changes in the slot"),
            self._connection.transaction(),
            self._patiently(lambda: self._opened(end)) as cursor,
        ):
            for (data,) in cursor:
                yield data

    def _opened(self, end: int) -> Any:
        cursor = self._connection.cursor("changes", binary=True)
        cursor.itersize = _FETCHED_TOGETHER
        cursor.execute(f"SELECT data FROM {_LOOK}", [self._slot, lsn_text(end), None, self._publication])
        return cursor

    def advance(self, lsn: int) -> None:
        """What stands before is done. Never back."""
        with told(f"advance replication slot {self._slot}"):
            query = (
                "SELECT pg_replication_slot_advance(slot_name, %s::pg_lsn) FROM pg_replication_slots "
                "WHERE slot_name = %s AND confirmed_flush_lsn < %s::pg_lsn"
            )
            place = lsn_text(lsn)
            self._patiently(lambda: rows(self._connection, query, [place, self._slot, place]))

    def _patiently(self, action: Callable[[], Any]) -> Any:
        from psycopg.errors import ObjectInUse

        until = time.monotonic() + _PATIENCE
        while True:
            # A savepoint where the caller has a transaction, which a refusal must not end.
            try:
                with told(f"read replication slot {self._slot}"), self._connection.transaction():
                    return action()
            except ConnectorFailure as error:
                if not isinstance(error.__cause__, ObjectInUse):
                    raise
                if time.monotonic() > until:
                    raise ConnectorFailure(
                        f"somebody else reads replication slot {self._slot} ({error.__cause__}): two "
                        "connectors with one slot.name lose changes to each other. Give each its own"
                    ) from None
            time.sleep(0.2)


def _transaction(found: tuple[Any, ...]) -> Transaction:
    return Transaction(int(found[0], 16), lsn_of(found[1]), found[2])
