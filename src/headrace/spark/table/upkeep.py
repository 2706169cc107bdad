"""Small files put together and old versions removed, between two batches.

A MERGE rewrites files, as compaction does, so the two must not run at the same time. The lake only appends
and can do both at once; here the next batch waits.
"""

from __future__ import annotations

import json
import logging
import time

from headrace.spark.lake.config import Maintenance
from headrace.spark.lake.failures import short
from headrace.spark.lake.files import Files
from headrace.spark.table.opened import Opened
from headrace.spark.table.plan import derived_definitions, table_state

_log = logging.getLogger(__name__)


class Upkeep:
    """Of one table and all that is derived from it."""

    def __init__(self, settings: Maintenance | None, files: Files) -> None:
        self.settings = settings
        self.files = files

    def look(self, opened: Opened, now: float | None = None) -> bool:
        """Whether it was due. The first look only begins to count.

        The batch is in its tables by now. What fails is told of, and has its next turn as if it were done.
        """
        if self.settings is None:
            return False
        now = time.time() if now is None else now
        file = f"{table_state(opened.store, opened.spec)}/maintenance.json"
        text = self.files.read(file)
        due = text is not None and now >= json.loads(text)["ended"] + self.settings.every_seconds
        if due:
            spec = opened.spec
            for name in (spec.name, *derived_definitions(spec), spec.dead_letters):
                try:
                    table = opened.open(name)
                    if table.schema() is not None:
                        table.maintain(self.settings)
                except Exception as error:  # whatever it is, neither the batch nor the other tables are worse
                    _log.error("maintenance of %s failed: %s", name, short(str(error)))
        if due or text is None:
            self.files.replace(file, json.dumps({"ended": now}))
        return due
