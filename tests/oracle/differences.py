"""Every known difference between Headrace's answers and Apache Kafka 4.3.1's, each with its reason.

A step and a path are regular expressions that must match whole. The comparison fails on a difference that is
not here, and on an entry that no longer occurs. `docs/compatibility.md` shows this list to readers.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Difference(NamedTuple):
    step: str
    path: str
    reason: str

    def explains(self, step: str, path: str) -> bool:
        return re.fullmatch(self.step, step) is not None and re.fullmatch(self.path, path) is not None


DIFFERENCES: tuple[Difference, ...] = ()
