"""The library breaks what it says, at once, for the process that has it and for no other."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.chaos import preload
from tests.chaos.preload import Faults

pytestmark = pytest.mark.skipif(preload.unavailable() is not None, reason=str(preload.unavailable()))
SUBJECT = """
import os, sys, time
inside, outside = (os.open(path, os.O_RDWR | os.O_CREAT) for path in sys.argv[1:])
def outcome(call):
    try:
        call()
        return 0
    except OSError as error:
        return error.errno
for _ in sys.stdin:
    began = time.monotonic()
    codes = [outcome(c) for fd in (inside, outside) for c in (
        lambda: os.pwrite(fd, b"x", 0), lambda: os.pwritev(fd, [b"x"], 0), lambda: os.write(fd, b"x"),
        lambda: os.fdatasync(fd), lambda: os.fsync(fd), lambda: os.pread(fd, 1, 0))]
    print(*codes, time.monotonic() - began, time.time(), flush=True)
"""


def test_disk_and_clock(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    faults = Faults(tmp_path / "inside", tmp_path / "control")
    command = [sys.executable, "-S", "-c", SUBJECT, str(tmp_path / "inside" / "f"), str(tmp_path / "outside")]
    environment = {**os.environ, **faults.environment}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True) as subject:
        assert subject.stdin is not None
        assert subject.stdout is not None
        requests, answers = subject.stdin, subject.stdout

        def fastest() -> float:
            return min(look()[1] for _ in range(20))  # a machine that stalls is slow of itself

        def look() -> tuple[list[int], float, float]:
            requests.write("\n")
            requests.flush()
            *codes, took, now = answers.readline().split()
            return list(map(int, codes)), float(took), float(now) - time.time()

        codes, _, offset = look()
        assert codes == [0] * 12
        assert fastest() < 0.3
        assert abs(offset) < 1
        faults.fail(writes=errno.ENOSPC, syncs=errno.EIO)
        codes, _, _ = look()
        assert codes == [errno.ENOSPC] * 3 + [errno.EIO] * 2 + [0] * 7
        faults.slow_disk(0.05)
        faults.set_clock(3600.25)
        codes, _, offset = look()
        assert codes == [0] * 12
        assert 0.3 <= fastest() < 0.6, "all six calls inside are slow, none of the six outside"
        assert 3599 < offset < 3601
        faults.slow_syncs(0.05)
        assert 0.1 <= fastest() < 0.2, "both syncs inside are slow"
        faults.set_clock(-0.9)
        faults.heal_disk()
        assert -2 < look()[2] < -0.8
        faults.heal()
        codes, _, offset = look()
        assert codes == [0] * 12
        assert abs(offset) < 1
