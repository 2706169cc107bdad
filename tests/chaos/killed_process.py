"""A client that is a process of its own, so that it can die like one: killed, or stopped and woken too late.

Its successor has the same name at the cluster. A process that was stopped wakes while its successor is at
work, and must find that it can do nothing any more.
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from tests.cluster_process import DIES_WITH_PARENT

Listen = Callable[[dict[str, Any]], None]
_END_SECONDS: Final = 45.0


class ToldProcess:
    """A Python process that tells what it does: a JSON object in each line. A line cut off is not told."""

    def __init__(
        self, arguments: Sequence[str], listen: Listen, on_end: Callable[[], None] = lambda: None
    ) -> None:
        self._process = subprocess.Popen(
            [*DIES_WITH_PARENT, sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._listen = listen
        self._on_end = on_end
        self._failure: BaseException | None = None
        self.errors = b""
        self.hung_at = ""
        """Where it was when it did not end though it was asked to."""
        self._threads = [threading.Thread(target=target) for target in (self._hear, self._keep_errors)]
        for thread in self._threads:
            thread.start()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def _hear(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                if line.endswith(b"\n"):
                    self._listen(json.loads(line))
        except BaseException as error:
            self._failure = error

    def _keep_errors(self) -> None:
        assert self._process.stderr is not None
        self.errors = self._process.stderr.read()

    def signal(self, number: signal.Signals) -> None:
        if self.running:
            self._process.send_signal(number)

    def end(self, *, gently: bool) -> None:
        """Until it has ended, and everything that it told was heard."""
        late = False
        if gently:
            self.signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
            late = self.running
        if late:
            self.signal(signal.SIGUSR1)  # it shows where it hangs
            time.sleep(0.5)
        if self.running:
            self._process.kill()
        status = self._process.wait()
        for thread in self._threads:
            thread.join()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._on_end()
        if self._failure is not None:
            raise RuntimeError("what a client told could not be recorded") from self._failure
        if late:
            self.hung_at = self.errors.decode()[-2000:]
        if status not in (0, -signal.SIGKILL, -signal.SIGTERM):
            raise RuntimeError(f"a client ended with {status}: {self.errors.decode()[-2000:]}")


class Lives:
    """One process after another, each with the same name at the cluster."""

    def __init__(self, start: Callable[[int], ToldProcess], source: random.Random) -> None:
        self._start = start
        self._random = source
        self._zombie: ToldProcess | None = None
        self.count = 0
        self.zombies = 0
        self.hung_at = ""
        """Where the last one hung, if it did."""

    def live(self, until: float, ended: threading.Event) -> None:
        """Start the next one. It lives until then, unless it ends by itself or everything does."""
        self.count += 1
        process = self._start(self.count)
        wakes = time.monotonic() + self._random.uniform(1.0, 5.0)
        while time.monotonic() < until and process.running and not ended.wait(0.1):
            if self._zombie is not None and time.monotonic() > wakes:
                self._zombie.signal(signal.SIGCONT)
        self.lay_to_rest()
        if ended.is_set():
            process.end(gently=True)
            self.hung_at = process.hung_at
        elif self._random.random() < 0.3:
            process.signal(signal.SIGSTOP)
            self._zombie = process
            self.zombies += 1
        else:
            process.end(gently=False)

    def lay_to_rest(self) -> None:
        zombie, self._zombie = self._zombie, None
        if zombie is not None:
            zombie.end(gently=False)
