"""A long list, a few items at a time: whoever goes through it leaves the loop to others in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

from headrace.broker.runtime.turns import Turns

T = TypeVar("T")


async def slices(turns: Turns, items: Sequence[T], size: int) -> AsyncIterator[Sequence[T]]:
    """Waits for a turn before each slice but the first, so that a short list waits for nothing."""
    for at in range(0, len(items), size):
        if at and turns.is_over:
            await turns.next()
        yield items[at : at + size]
