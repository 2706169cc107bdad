"""How many fetches of very many partitions are in hand at once: read from their frames, and not yet answered.

In hand one of them takes a megabyte and more, in its frame some kilobytes. Together they get a part of the
loop, so that more of them would be done no sooner. The others wait their turn, in the order of their arrival.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

MOST_IN_HAND: Final = 8


class WideFetches:
    def __init__(self) -> None:
        self._room = asyncio.Semaphore(MOST_IN_HAND)

    @asynccontextmanager
    async def admitted(self, is_link: bool) -> AsyncIterator[None]:
        """At once for another broker (`is_link`): a follower that waits behind consumers leaves the ISR."""
        if is_link:
            yield
        else:
            async with self._room:
                yield
