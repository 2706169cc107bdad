"""Which appends to a table are under way in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

#: Clocks of file systems and of this machine may differ by so much.
_CLOCKS_SECONDS: Final = 60.0


class Appends:
    """Those of this process. Files that they have written already are in no version of the table yet: VACUUM
    must not take them for old ones, however soon those may go.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._began: dict[str, list[float]] = {}

    @contextmanager
    def under_way(self, path: str) -> Iterator[None]:
        began = self._clock()
        with self._guard:
            self._began.setdefault(path, []).append(began)
        try:
            yield
        finally:
            with self._guard:
                self._began[path].remove(began)

    def longest(self, path: str) -> float:
        """For how many seconds the oldest of them has been going on; 0 where there is none."""
        with self._guard:
            began = min(self._began.get(path, ()), default=None)
        return 0.0 if began is None else self._clock() - began + _CLOCKS_SECONDS
