"""When the copy of a table may begin: as soon as nothing is running that its changes might leave out.

The slot and the publication have a table from some moment on. A transaction that was running then may have
changed the table before that moment, or have its commit in the log before it and yet not be visible: neither
the stream nor a snapshot taken at once would have it. When it has ended, every new snapshot has.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from headrace.connect.postgres.database import rows, told
from headrace.connect.postgres.visibility import visible_of

if TYPE_CHECKING:
    from psycopg import Connection


class Gate:
    def __init__(self) -> None:
        self._before: dict[str, int] = {}
        """Transactions that were running when a table was first seen have smaller numbers."""

    def open_for(self, connection: Connection[Any], tables: Collection[str]) -> set[str]:
        """Call it only after the slot and the publication were found to have these tables."""
        with told("say what is running"):
            if any(table not in self._before for table in tables):
                # The end of a snapshot would not do: it is behind the last transaction that ended, and others
                # with larger numbers may be running. So a number is taken, and all those are smaller.
                number = int(rows(connection, "SELECT pg_current_xact_id()::text")[0][0])
                for table in tables:
                    self._before.setdefault(table, number)
            visible = visible_of(rows(connection, "SELECT pg_current_snapshot()::text")[0][0])
        return {table for table in tables if self._before[table] <= visible.xmin}
