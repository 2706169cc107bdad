"""The cleaner's process: takes jobs from its standard input, one line each, and writes what it has done.

It opens every record of a log, which would hold up the broker for minutes: so it runs beside it, at a lower
priority, and shares nothing with it but the files. After each group of segments it waits for the word of the
broker, which alone knows whether the log is still the same. It ends with the broker, whichever way that ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from typing import Final, TextIO

from headrace.core.errors import CorruptLog
from headrace.log.cleaner.job import PassEnd, job_from_json, step_to_json
from headrace.log.cleaner.passes import clean
from headrace.log.os_disk import OsDisk

NICENESS: Final = 10
GO_ON: Final = "go on\n"
STOP: Final = "stop\n"
FAILED: Final = "Failed"
_UNPACED_ABOVE: Final = 1e15
_PR_SET_PDEATHSIG: Final = 1


class Throttle:
    """Waits so that no more bytes a second pass than allowed, over a second or two at a time."""

    __slots__ = ("_bytes", "_per_second", "_since")

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._bytes = 0
        self._since = time.monotonic()

    def __call__(self, count: int) -> None:
        self._bytes += count
        if self._bytes < self._per_second / 10:
            return
        due = self._since + self._bytes / self._per_second
        now = time.monotonic()
        if due > now:
            time.sleep(due - now)
        self._bytes, self._since = 0, max(now, due)


def _unpaced(_count: int) -> None:
    """Without a limit."""


def serve(jobs: TextIO, answers: TextIO) -> None:
    """Until the input ends."""
    for line in jobs:
        if line in (GO_ON, STOP):
            continue  # of a job that is over
        job = job_from_json(line)
        unlimited = job.bytes_per_second >= _UNPACED_ABOVE
        try:
            for step in clean(OsDisk(), job, _unpaced if unlimited else Throttle(job.bytes_per_second)):
                _say(answers, step_to_json(step))
                if not isinstance(step, PassEnd) and jobs.readline() != GO_ON:
                    break
        except CorruptLog as error:
            _say(answers, json.dumps([FAILED, None, str(error)]))
        except OSError as error:
            _say(answers, json.dumps([FAILED, error.errno, str(error)]))
        except Exception as error:  # it would come again with every process that is started for this log
            _say(answers, json.dumps([FAILED, None, repr(error)]))


def _say(answers: TextIO, text: str) -> None:
    answers.write(text + "\n")
    answers.flush()


def _end_with_parent(parent: int) -> None:
    """The kernel ends this process with the thread that started it, however long its job still takes."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != parent:
            sys.exit(0)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a keyboard means the broker, which will close the pipe
    _end_with_parent(int(sys.argv[1]))
    os.nice(NICENESS)
    with contextlib.suppress(BrokenPipeError):
        serve(sys.stdin, sys.stdout)


if __name__ == "__main__":
    main()
