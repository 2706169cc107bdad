"""One driver for each state directory. The kernel takes a lock back however a process ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.core.errors import HeadraceError
from headrace.spark.lake.files import LocalFiles, is_local


class Taken(HeadraceError):
    """Says who has it."""


@contextmanager
def held(state: str, purpose: str) -> Iterator[None]:
    """A state that is not local cannot be locked; there, whoever schedules the job runs one."""
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
                f"process {file.read().strip() or 'another'} already does `headrace lake {purpose}` with "
                f"{directory}; end it first, or give this one another state directory and other tables"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
