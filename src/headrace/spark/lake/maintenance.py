"""Small files put together and old snapshots removed: on a schedule beside the job, or by `lake maintain`."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pyspark.sql import SparkSession

from headrace.spark.lake import locks
from headrace.spark.lake.config import LakeConfig, Maintenance
from headrace.spark.lake.files import files_for
from headrace.spark.lake.plan import Route
from headrace.spark.lake.tables.opening import open_table
from headrace.spark.lake.tables.table import Upkeep

_log = logging.getLogger(__name__)


class Maintained(NamedTuple):
    table: str
    upkeep: Upkeep | None
    error: str | None
    seconds: float


def table_names(routes: Iterable[Route]) -> list[str]:
    """Each once: several topics may share a table."""
    return list(dict.fromkeys(name for route in routes for name in (route.table, route.dead_letters)))


def maintain(
    spark: SparkSession,
    config: LakeConfig,
    routes: Sequence[Route],
    *,
    told: Callable[[Maintained], None] = lambda _: None,
) -> list[Maintained]:
    """One table after the other. A table that fails is told of, and the next one has its turn."""
    settings = config.maintenance or Maintenance()
    done = []
    with locks.held(config.state, "maintain", spark):
        for name in table_names(routes):
            began = time.monotonic()
            try:
                table = open_table(spark, config, name)
                if table.schema() is None:
                    continue
                found = Maintained(table.name, table.maintain(settings), None, time.monotonic() - began)
            except Exception as error:  # whatever it is, the other tables need not wait
                text = str(error).partition("\n")[0]
                found = Maintained(name, None, text, time.monotonic() - began)
            done.append(found)
            told(found)
        _note_end(spark, config)
    return done


def _file(config: LakeConfig) -> str:
    return f"{config.state}/maintenance.json"


def _note_end(spark: SparkSession, config: LakeConfig) -> None:
    files_for(config.state, spark).replace(_file(config), json.dumps({"ended": time.time()}))


def last_maintained(spark: SparkSession | None, config: LakeConfig) -> float | None:
    text = files_for(config.state, spark).read(_file(config))
    return None if text is None else float(json.loads(text)["ended"])


def _complain(found: Maintained) -> None:
    if found.error is not None:
        _log.warning("%s was not maintained, and is tried again when it is due: %s", found.table, found.error)


class Schedule:
    """Runs `maintain` in a thread of its own whenever it is due. Loading goes on meanwhile."""

    def __init__(self, spark: SparkSession, config: LakeConfig) -> None:
        self.spark = spark
        self.config = config
        self._thread: threading.Thread | None = None
        if config.maintenance is not None and last_maintained(spark, config) is None:
            _note_end(spark, config)  # loads may be short, and each counts from the same moment

    def due(self) -> bool:
        if self.config.maintenance is None:
            return False
        last = last_maintained(self.spark, self.config)
        return last is not None and time.time() >= last + self.config.maintenance.every_seconds

    def look(self, routes: Sequence[Route]) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        if routes and self.due():
            self._thread = threading.Thread(target=self._run, args=(list(routes),), name="lake maintenance")
            self._thread.start()

    def _run(self, routes: Sequence[Route]) -> None:
        try:
            # A session of its own: what maintenance sets is not for the queries.
            maintain(self.spark.newSession(), self.config, routes, told=_complain)
        except locks.Taken:
            pass  # somebody runs `lake maintain` right now, which is as good

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
