"""Rule 12: uploads in parts that a leader before us has begun and nobody finishes are aborted.

Their objects were never named, and never will be: such a leader cannot write the manifest any more, and an
upload that is aborted fails for whoever still goes on with it. So this can harm nothing. It is done soon
after the start, and again now and then, since leaders die at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.core.ports_objects import Done, ObjectStore, PartialUpload, PartialUploads
from headrace.tier.calls import reason_of
from headrace.tier.names import Folder, TieredPartition, parse_key

if TYPE_CHECKING:
    from headrace.broker.runtime.runtime import Runtime
    from headrace.broker.tiering.thread_limit import LimitedThreads

TURNS: Final = 20
"""Between two looks, in intervals of remote.log.manager.task.interval.ms: ten minutes by default."""
AGE_MS: Final = 86_400_000
"""What nobody has finished for so long is given up, whoever began it."""

Swept = tuple[str, Sequence[str]]
"""Why the store did not tell of uploads, and what is worth a line in the log."""
Epochs = Mapping[TieredPartition, int]
"""In which epoch this broker leads a partition; below 0 if it does not."""


class UploadSweeper:
    def __init__(
        self, runtime: Runtime, store: ObjectStore, threads: LimitedThreads, cluster_id: Callable[[], str]
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._threads = threads
        self._cluster_id = cluster_id
        self._turn = 0
        self.failure = ""
        """Why the store did not answer the last time; empty if it did."""
        self._running: asyncio.Future[Swept] | None = None

    def tick(self, epochs: Epochs) -> None:
        """At each interval, with what is so at this moment: later there are only higher epochs."""
        if not isinstance(self._store, PartialUploads) or self._running is not None:
            return
        self._turn = (self._turn + 1) % TURNS
        if self._turn != 1:
            return
        timeout = self._runtime.config.headrace_tier_call_timeout_ms / 1000
        prefix, now_ms = f"{self._cluster_id()}/", self._runtime.clock.wall_ms()
        work = partial(_sweep, self._store, prefix, epochs, now_ms, timeout)
        self._running = self._threads.run(work)
        self._running.add_done_callback(self._on_done)

    def _on_done(self, done: asyncio.Future[Swept]) -> None:
        self._running = None
        if done.cancelled():
            return
        error = done.exception()
        self.failure, lines = (repr(error), ()) if error is not None else done.result()
        if self.failure:
            self._runtime.log.warning("object store: its uploads are not listed", error=self.failure)
        for said in lines:
            self._runtime.log.info("object store: an upload that nobody finishes", said=said)


def _sweep(store: PartialUploads, prefix: str, epochs: Epochs, now_ms: int, deadline_seconds: float) -> Swept:
    """For a thread."""
    found = store.partial_uploads(prefix, deadline_seconds=deadline_seconds)
    if not isinstance(found, Sequence):
        return found.reason, ()
    said = []
    for each in found:
        if not _is_given_up(each, epochs, now_ms):
            continue
        outcome = store.abort_upload(each, deadline_seconds=deadline_seconds)
        said.append(
            f"aborted: {each.key}" if isinstance(outcome, Done) else f"{each.key}: {reason_of(outcome)}"
        )
    return "", said


def _is_given_up(upload: PartialUpload, epochs: Epochs, now_ms: int) -> bool:
    if upload.begun_ms <= now_ms - AGE_MS:
        return True
    place = parse_key(upload.key)
    if place is None:
        return False
    name = Folder.of(*place).name_of(upload.key)
    return name is not None and name.leader_epoch < epochs.get(place[1], -1)
