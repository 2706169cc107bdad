"""The garbage collector rests while the modules of a command are imported.

They make tens of thousands of objects that live to the end of the process. To look for garbage among them,
again and again while they come, is a twentieth of what a short command costs.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
