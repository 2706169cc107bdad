"""The history of a run while it happens: written line by line, from any thread, on one clock."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.checker.history import Action, History, Outcome

WRITING: Final = ("send", "transaction")
"""Kinds of operations whose success shows that the cluster serves."""


class Recorder:
    """Every event goes to the file at once, so that a run that was cut off can still be judged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("w", encoding="utf-8")
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self.history = History(clock=self.now, on_event=self._write)
        self.complaints: list[str] = []
        self.remarks: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()

    def now(self) -> float:
        """Seconds since the recorder was made."""
        return time.monotonic() - self._began

    def _write(self, event: dict[str, Any]) -> None:
        self._file.write(json.dumps(event, separators=(",", ":")) + "\n")

    def invoke(self, process: str, kind: str, actions: Iterable[Action] = ()) -> int:
        with self._lock:
            return self.history.invoke(process, kind, actions)

    def ok(self, operation: int, actions: Iterable[Action] | None = None) -> None:
        with self._lock:
            self.history.ok(operation, actions)

    def fail(self, operation: int, error: str, actions: Iterable[Action] | None = None) -> None:
        with self._lock:
            self.history.fail(operation, error, actions)

    def unknown(self, operation: int, error: str, actions: Iterable[Action] | None = None) -> None:
        with self._lock:
            self.history.unknown(operation, error, actions)

    def done(self, process: str, kind: str, actions: Iterable[Action] = ()) -> None:
        """An operation that was over as soon as it was known."""
        with self._lock:
            self.history.ok(self.history.invoke(process, kind, actions))

    def fault(self, name: str, description: str) -> None:
        self.faults[name] += 1
        self.done("nemesis", description)

    def complain(self, text: str) -> None:
        """Something that no client may see, and that is not an operation."""
        with self._lock:
            self.complaints.append(text)

    def remark(self, text: str) -> None:
        """Something worth counting that is allowed to happen."""
        with self._lock:
            self.remarks[text] += 1

    def last_acknowledgement(self) -> float:
        with self._lock:
            for number in reversed(self.history.order_of_ends):
                operation = self.history.operations[number]
                if operation.outcome is Outcome.OK and operation.kind in WRITING:
                    return operation.ended_at
        return 0.0

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def longest_silence(history: History, since: float, until: float) -> tuple[float, float]:
    """(when it began, how long it took) of the longest time in which no send was acknowledged."""
    times = [
        operation.ended_at
        for operation in (history.operations[number] for number in history.order_of_ends)
        if operation.kind in WRITING
        and operation.outcome is Outcome.OK
        and since <= operation.ended_at <= until
    ]
    times = [since, *times, until]
    took, began = max((after - before, before) for before, after in pairwise(times))
    return began, took
