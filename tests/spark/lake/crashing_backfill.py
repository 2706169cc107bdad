"""A backfill whose driver dies, all of it and at once, at a place that it is told.

`python -m tests.spark.lake.crashing_backfill JSON`: a lake.toml, a topic, directories, and `crash`, which is
a place and how many steps were taken before it in this run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headrace.spark.lake import config as configs
from headrace.spark.lake.backfill import job, plan
from headrace.spark.lake.backfill.job import Backfill
from headrace.spark.lake.backfill.task import Outcome, Work
from headrace.spark.lake.files import LocalFiles
from headrace.spark.lake.sessions import session_for
from headrace.spark.segments.place import Directories
from headrace.spark.segments.plan import Task

PLACES = ("reading", "read", "noted", "moving", "committed", "finished")


def die() -> None:
    """Python and its JVM are one group."""
    os.killpg(os.getpid(), signal.SIGKILL)


class CrashingBackfill(Backfill):
    crash = ("", -1)

    def _at(self, place: str) -> None:
        if self.crash == (place, self.done.steps):
            die()

    def read(
        self, work: Work, step: Sequence[Task], stopping: threading.Event, told: Callable[[int], None]
    ) -> list[Outcome]:
        def tell(ended: int) -> None:
            told(ended)
            if ended:
                self._at("reading")

        found = super().read(work, step, stopping, tell)
        self._at("read")
        return found

    def write_down(self, *given: Any) -> None:
        super().write_down(*given)
        self._at("noted")

    def commit(self, *given: Any) -> None:
        if self.crash == ("moving", self.done.steps):
            LocalFiles.move = _dying_move  # type: ignore[method-assign]  # this process ends there
        super().commit(*given)
        self._at("committed")

    def _finish(self, ends: dict[int, int]) -> None:
        super()._finish(ends)
        if self.crash[0] == "finished":
            die()


_moved: list[str] = []
_move = LocalFiles.move


def _dying_move(self: LocalFiles, source: str, target: str) -> bool:
    """One file is at its place, the others are not."""
    if _moved:
        die()
    _moved.append(source)
    return _move(self, source, target)


def main() -> None:
    orders = json.loads(sys.argv[1])
    plan.LEAST_TASK_BYTES = orders["task_bytes"]  # type: ignore[misc]  # many steps of little
    plan.MOST_TASK_BYTES = orders["task_bytes"]  # type: ignore[misc]  # the same
    plan.TASKS_OF_A_CORE = 2  # type: ignore[misc]  # the same
    config = configs.load(Path(orders["config"]))
    spark = session_for(config)
    backfill = CrashingBackfill(spark, config, job.of_topic(spark, config, orders["topic"]).route)
    place, _, steps = orders.get("crash", ":-1").partition(":")
    backfill.crash = (place, int(steps))
    done = backfill.run(Directories(tuple(orders["files"])), threading.Event())
    assert done.complete
    spark.stop()


if __name__ == "__main__":
    main()
