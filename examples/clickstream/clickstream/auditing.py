"""Did every record arrive? Producers, log and lake are counted, window by window, and compared."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path
from subprocess import DEVNULL

from pyspark.sql import SparkSession

from clickstream.broker import HEADRACE
from clickstream.topics import ORDERS, PAGE_VIEWS
from headrace.audit.verdict import State, Verdict
from headrace.spark.audit.config import AuditConfig
from headrace.spark.audit.job import Auditor
from headrace.spark.audit.lakes import tables_of
from headrace.spark.lake.config import LakeConfig

#: Producers and the audit must have the same.
WINDOW_SECONDS = 5
LATENESS_SECONDS = 5
TOPICS = (PAGE_VIEWS, ORDERS)


class Audit:
    def __init__(self, spark: SparkSession, lake: LakeConfig, state: Path) -> None:
        config = AuditConfig(
            lake.kafka,
            topics=TOPICS,
            state=str(state),
            lakes=tables_of(lake, TOPICS),
            window_ms=WINDOW_SECONDS * 1000,
            lateness_ms=LATENESS_SECONDS * 1000,
        )
        self._auditor = Auditor(spark, config)
        self.verdicts: dict[tuple[str, int], Verdict] = {}

    def look(self) -> None:
        """One pass. Raises if a record was lost, doubled or altered anywhere."""
        found = self._auditor.run_once()
        news = {(verdict.topic, verdict.window_ms): verdict for verdict in found.verdicts}
        self.verdicts = {**self.verdicts, **news}  # another one: somebody may be looking at this one
        found.raise_first_difference()

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self.look()
            stop.wait(2)

    def finish(self) -> None:
        """Producers have said their last word. What is left to pass is the time for late records."""
        self.look()
        while any(verdict.state is State.OPEN for verdict in self.verdicts.values()):
            time.sleep(1)
            self.look()

    def certified(self, topic: str) -> list[Verdict]:
        """In the order of time."""
        return [
            verdict
            for (name, _), verdict in sorted(self.verdicts.items())
            if name == topic and verdict.state is State.CERTIFIED
        ]


def draw(bootstrap: str, directory: Path) -> None:
    """A chart for each topic, and a page with all of them."""
    directory.mkdir()
    report = [HEADRACE, "audit", "report", "--bootstrap", bootstrap]
    for topic in TOPICS:
        subprocess.run([*report, topic, "--output", directory / f"{topic}.svg"], check=True, stdout=DEVNULL)
    subprocess.run([*report, "--output", directory / "audit.html"], check=True, stdout=DEVNULL)
