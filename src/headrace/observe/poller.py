"""Looks at a cluster again and again, and keeps the last snapshot for everybody. There is one of it, however
many watch: brokers pay for looks, not for viewers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from headrace.audit.verdict import DEFAULT_TOPIC
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.core.tasks import spawn
from headrace.doctor.model import Unknown
from headrace.observe.building import build
from headrace.observe.history import History
from headrace.observe.look import Look
from headrace.observe.looking import Looker
from headrace.observe.metadata_changes import MOST_KEPT, MetadataChange, changes_between
from headrace.observe.pace import Pace
from headrace.observe.snapshot import Snapshot
from headrace.observe.verdicts import VerdictFollower

log = logging.getLogger("headrace.observe")

INTERVAL_SECONDS: Final = 5.0
REQUEST_SECONDS: Final = 5.0
"""A broker that does not answer by then is told of as silent. Others wait for it no longer."""


class Failing(NamedTuple):
    """Why there is no newer snapshot."""

    since_ms: int
    reason: str
    headline: str = "No broker answers"


class Poller:
    def __init__(
        self,
        cluster: Cluster,
        *,
        interval_seconds: float = INTERVAL_SECONDS,
        audit_topic: str = DEFAULT_TOPIC,
        on_snapshot: Callable[[Snapshot], None] = lambda _: None,
    ) -> None:
        """`cluster` should have REQUEST_SECONDS as its time-out; it is closed by whoever made it."""
        self.snapshot: Snapshot | None = None
        self.failing: Failing | None = None
        self.history = History()
        self._pace = Pace(interval_seconds)
        self._under_way: tuple[float, int] | None = None
        """When the look began, by both clocks."""
        self._looker = Looker(cluster)
        self._verdicts = VerdictFollower(cluster, audit_topic)
        self._before: Look | None = None
        self._changes: deque[MetadataChange] = deque(maxlen=MOST_KEPT)
        self.changes: tuple[MetadataChange, ...] = ()
        """The oldest first, of those looks that this poller has made."""
        self._number = 0
        self._on_snapshot = on_snapshot
        self._moved = asyncio.Event()

    async def run(self) -> None:
        """For ever."""
        following = spawn("verdicts of the audit", self._verdicts.follow())
        try:
            while True:
                began = time.monotonic()
                is_whole = await self.once()
                await asyncio.sleep(self._pace.rest(time.monotonic() - began, is_whole=is_whole))
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    @property
    def overdue(self) -> Failing | None:
        """A look that has not ended when it should have: until then nobody knows whether brokers answer, and
        what was seen before is not said to be so now."""
        under_way = self._under_way
        if under_way is None or not self._pace.is_late(time.monotonic() - under_way[0]):
            return None
        began = datetime.fromtimestamp(under_way[1] / 1000, UTC)
        reason = f"A look at the cluster has waited for answers since {began:%H:%M:%S} UTC."
        return Failing(under_way[1], reason, "Brokers have not answered yet")

    async def once(self) -> bool:
        """Whether everything was answered."""
        self._under_way = (time.monotonic(), time.time_ns() // 1_000_000)
        is_whole = False
        try:
            look = await self._looker.look()
        except ClientFailure as error:
            if self.failing is None:
                log.warning("the cluster cannot be looked at", extra={"error": str(error)})
                self.failing = Failing(time.time_ns() // 1_000_000, str(error))
            else:
                self.failing = self.failing._replace(reason=str(error))
        else:
            self._take(look._replace(verdicts=self._verdicts.seen))
            is_whole = not look.all_ends.silent and not isinstance(look.health, Unknown)
        finally:
            self._under_way = None
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        return is_whole

    def _take(self, look: Look) -> None:
        self._number += 1
        if self._before is not None:
            self._changes.extend(changes_between(self._before, look))
            self.changes = tuple(self._changes)
        snapshot = build(look, self._before, self.history, self._number)
        self._before = look
        if self.failing is not None:
            log.info("the cluster answers again")
        self.failing = None
        self.snapshot = snapshot
        self._on_snapshot(snapshot)

    async def moved(self) -> None:
        """Until the next look has ended, well or not."""
        await self._moved.wait()
