"""The poller in a thread of its own: a look at a huge cluster takes its time, and no page waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

from headrace.client.cluster import Cluster
from headrace.core.tasks import spawn
from headrace.observe.history import History
from headrace.observe.metadata_changes import MetadataChange
from headrace.observe.poller import Failing, Poller
from headrace.observe.snapshot import Snapshot


class Watching:
    """What it has seen may be read from any thread: a snapshot is replaced, never changed."""

    def __init__(self, connect: Callable[[], Cluster], interval_seconds: float, audit_topic: str) -> None:
        self._connect = connect
        self._interval = interval_seconds
        self._audit_topic = audit_topic
        self._poller: Poller | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="poller", daemon=True)
        self._nothing = History()
        self.failure: BaseException | None = None
        """Why it has ended by itself: a defect of ours."""

    @property
    def snapshot(self) -> Snapshot | None:
        return None if self._poller is None else self._poller.snapshot

    @property
    def failing(self) -> Failing | None:
        return None if self._poller is None else self._poller.failing

    @property
    def overdue(self) -> Failing | None:
        return None if self._poller is None else self._poller.overdue

    @property
    def history(self) -> History:
        return self._nothing if self._poller is None else self._poller.history

    @property
    def changes(self) -> Sequence[MetadataChange]:
        return () if self._poller is None else self._poller.changes

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._loop is not None and self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._poll())
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self.failure = error

    async def _poll(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with self._connect() as cluster:
            self._poller = Poller(cluster, interval_seconds=self._interval, audit_topic=self._audit_topic)
            self._task = spawn("the poller", self._poller.run(), is_awaited=True)
            await self._task
