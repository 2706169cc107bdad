"""One driver for each state directory, and commits to a table in turn. The kernel takes a lock back however a
process ends.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from pyspark.sql import SparkSession

from headrace.core.errors import HeadraceError
from headrace.spark.lake.files import LocalFiles, is_local

_DYING_SECONDS: Final = 120.0


class Taken(HeadraceError):
    """Says who has it."""


@contextmanager
def held(
    state: str, purpose: str, spark: SparkSession | None = None, *, part: str = "lake"
) -> Iterator[None]:
    """A state that is not local cannot be locked; there, whoever schedules the job runs one.

    With `spark`, its process takes a lock too. It outlives a Python that is killed by moments, and may then
    still commit to a table. Whoever comes next waits for its end.
    """
    if not is_local(state):
        yield
        return
    directory = LocalFiles.path(state)
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{purpose}.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Taken(
                f"process {file.read().strip() or 'another'} already does `headrace {part} {purpose}` with "
                f"{directory}; end it first, or give this one another state directory and other tables"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        if spark is None:
            yield
            return
        with _held_by_spark(spark, directory / f"{purpose}-spark.lock"):
            yield


@contextmanager
def _held_by_spark(spark: SparkSession, path: Path) -> Iterator[None]:
    jvm: Any = spark._jvm
    file = jvm.java.io.RandomAccessFile(str(path), "rw")
    try:
        deadline = time.monotonic() + _DYING_SECONDS
        while file.getChannel().tryLock() is None:
            if time.monotonic() > deadline:
                raise Taken(
                    f"the Spark of a driver that was killed still runs, and has {path}: end that process"
                )
            time.sleep(0.2)
        yield
    finally:
        file.close()


class _Turns:
    """A lock that all threads of this process share, and no other process has meanwhile."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._open: dict[Path, tuple[IO[str], int]] = {}

    def enter(self, path: Path) -> None:
        with self._guard:
            file, count = self._open.get(path, (None, 0))
            if file is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                file = path.open("a+")
                fcntl.flock(file, fcntl.LOCK_EX)
            self._open[path] = (file, count + 1)

    def leave(self, path: Path) -> None:
        with self._guard:
            file, count = self._open.pop(path)
            if count > 1:
                self._open[path] = (file, count - 1)
            else:
                file.close()


_TURNS: Final = _Turns()
_OF_THREADS: Final[dict[str, threading.Lock]] = {}


def of_threads(table: str) -> threading.Lock:
    """For what only one thread of this process may do to a table at a time; a turn is for all of them."""
    return _OF_THREADS.setdefault(table, threading.Lock())


@contextmanager
def turn(state: str, table: str) -> Iterator[None]:
    """For commits to a Delta or Iceberg table in a local directory.

    There both look whether a version exists and then rename a file to it. Within a process they see to it
    that nobody comes in between. Of two processes (a job, `lake maintain`) one could replace the other's
    commit.
    Other file systems refuse the second rename, and need none of this.
    """
    if not is_local(state):
        yield
        return
    path = LocalFiles.path(state) / "tables" / f"{table}.lock"
    _TURNS.enter(path)
    try:
        yield
    finally:
        _TURNS.leave(path)
