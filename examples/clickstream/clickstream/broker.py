"""`headrace up` as a process beside this one: brokers on free ports, for as long as the block lasts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: The command as it is installed beside this Python.
HEADRACE = str(Path(sys.executable).with_name("headrace"))


@contextmanager
def running(directory: Path, brokers: int) -> Iterator[str]:
    """Gives the bootstrap address."""
    directory.mkdir(parents=True)
    command = [HEADRACE, "up", "--port", "0", "--brokers", str(brokers), "--dir", str(directory / "data")]
    with (directory / "broker.log").open("wb") as log:
        # In a session of its own: Ctrl-C is for this program, which stops its brokers last.
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        if not ready.startswith("ready "):
            raise RuntimeError(f"the brokers did not start: {(directory / 'broker.log').read_text()}")
        yield ready.strip().partition("bootstrap=")[2]
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
