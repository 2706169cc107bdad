"""The staged rows of one target: written by Spark, then tried and applied by statements on the database."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from headrace.connect.api import Batch, Config, ConnectorFailure
from headrace.connect.jdbc.folding import Plan, culprits
from headrace.connect.jdbc.upserting import Piece, Upserting
from headrace.connect.records import Rejected
from headrace.spark.connect.jdbc_staging import staged_rows
from headrace.spark.connect.jdbc_target import JdbcTarget, RecordFault

log = logging.getLogger("headrace.connect")

_ATTEMPTS: Final = 3
_ROWS_AT_ONCE: Final = "5000"


class StagedTable:
    def __init__(self, target: JdbcTarget, config: Config, plan: Plan, name: str) -> None:
        self._target = target
        self._config = config
        self._plan = plan
        self._name = name
        self._sql = Upserting(target.dialect, plan.target, name)
        self._is_there = False
        self._shapes: list[str] = []
        self._has_deletes = False

    def fill(self, batch: Batch, connection: Mapping[str, str]) -> None:
        """Again if a task was repeated after it had written its rows already."""
        for _ in range(_ATTEMPTS):
            self.drop()
            with self._target.transaction():
                self._target.execute(self._sql.create())
            self._is_there = True
            self._write(batch, connection)
            if self._settle():
                return
        raise ConnectorFailure(f"tasks of Spark have died {_ATTEMPTS} times while they staged {self._name}")

    def refused(self) -> list[Rejected]:
        """Records that are no rows, whatever the database says."""
        with self._target.undone():
            found = self._target.rows(self._sql.refused())
        return [_rejected(row, row[3] or "") for row in found]

    def apply(self, piece: Piece | None = None) -> None:
        """In the caller's transaction. Raises RecordFault."""
        piece = piece or Piece()
        if self._has_deletes:
            self._target.execute(self._sql.delete(piece))
        for shape in self._shapes:
            update = self._sql.update(shape, piece) if self._plan.by_key else None
            if update is not None:
                self._target.execute(update)
            self._target.execute(self._sql.insert(shape, piece, unless_there=self._plan.by_key))

    def blamed(self) -> list[Rejected]:
        """Which records the database refuses, each tried after those before it. In the caller's
        transaction."""
        found: list[Rejected] = []
        steps = int(self._target.rows(self._sql.steps())[0][0] or 0)
        for step in range(steps + 1):
            whole = Piece(step)

            def span(first: int, last: int, step: int = step) -> tuple[int, int, int]:
                (row,) = self._target.rows(self._sql.span(Piece(step, first, last)))
                return int(row[0] or 0), int(row[1] or 0), int(row[2] or 0)

            def attempt(first: int, last: int, step: int = step) -> str | None:
                try:
                    with self._target.attempt():
                        self.apply(Piece(step, first, last))
                except RecordFault as error:
                    return str(error)
                return None

            for number, said in culprits(span, attempt, whole.first, whole.last):
                (row,) = self._target.rows(self._sql.place(number))
                found.append(_rejected(row, said))
        return found

    def drop(self) -> None:
        if self._is_there:
            with self._target.transaction():
                self._target.execute(self._sql.drop())
            self._is_there = False

    def discard(self) -> None:
        """What cannot be dropped now is swept up when the connector begins again."""
        try:
            self.drop()
        except ConnectorFailure as error:
            log.warning("staged rows are left", extra={"table": self._name, "why": str(error)})

    def _write(self, batch: Batch, connection: Mapping[str, str]) -> None:
        tasks = int(self._config["tasks.max"])
        rows = staged_rows(batch.frame, self._plan, self._config, tasks)
        options = {
            **connection,
            **dict(self._target.dialect.writer),
            "dbtable": self._target.dialect.quoted(self._name),
            "batchsize": _ROWS_AT_ONCE,
        }
        rows.write.format("jdbc").mode("append").options(**options).save()

    def _settle(self) -> bool:
        """False where rows are there twice."""
        with self._target.transaction():
            count, different = (int(each or 0) for each in self._target.rows(self._sql.doubled())[0])
            if count != different:
                return False
            if (index := self._sql.index()) is not None:
                self._target.execute(index)
            self._shapes = sorted(str(shape) for (shape,) in self._target.rows(self._sql.shapes()))
            self._has_deletes = self._target.rows(self._sql.deletes()) != [("0",)]
        return True


def _rejected(row: tuple[str | None, ...], reason: str) -> Rejected:
    return Rejected(str(row[0]), int(row[1] or 0), int(row[2] or 0), reason)
