"""What a fetch wants of each partition, and how it hears that there is something to say.

A fetch session of thousands of partitions is served by what changed, not by what it follows: each of its
partitions tells it when it moves, and only those that moved, or whose position was sent again, are read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from headrace.core.memory import MemoryShare
from headrace.replication.following import IN_DOUBT

if TYPE_CHECKING:
    from headrace.broker.fetch.delayed_fetch import DelayedFetch
    from headrace.replication.partition import Partition

AT_ONCE: Final = 1 << 62
WATCHED_BYTES: Final = 500
"""What one costs in memory, with its places in tables, besides the name of its topic."""


class FetchKey(NamedTuple):
    """How a request names a partition: by topic name up to Fetch 12, by topic id from 13 on."""

    topic: str
    topic_id: UUID | None
    partition: int


class FetchWatcher:
    """Whoever reads: a session, or one fetch that has none."""

    __slots__ = ("as_replica", "dirty", "hears_commits", "read_committed", "stale", "waiting")

    def __init__(self, as_replica: bool, read_committed: bool = False) -> None:
        self.as_replica = as_replica
        """Reads up to the end of the log, and so is woken by appends; a consumer by the high watermark."""
        self.read_committed = read_committed
        """A consumer that sees only what transactions have decided is woken by the last stable offset."""
        self.hears_commits = not as_replica
        """A follower that consumers read from is woken by the high watermark too: theirs moves with it."""
        self.dirty: dict[WatchedPartition, None] = {}
        """Partitions with something to say, in the order in which they get their turn. Invariant: whatever
        is not in it would give no records and nothing that the peer does not know."""
        self.stale: dict[WatchedPartition, None] = {}
        """A position that was said before may have replaced theirs: they count as said anew with the next
        request, and not earlier, for the peer may be gone."""
        self.waiting: DelayedFetch | None = None

    def on_wait_over(self) -> None:
        """A session goes on hearing of its partitions between its fetches."""


class OneFetchWatcher(FetchWatcher):
    """Of a fetch without a session: it hears of its partitions only while it waits."""

    __slots__ = ("_memory", "_wanted")

    def __init__(
        self,
        as_replica: bool,
        read_committed: bool,
        wanted: Collection[WatchedPartition],
        memory: MemoryShare,
    ) -> None:
        super().__init__(as_replica, read_committed)
        self._wanted = wanted
        self._memory = memory
        memory.take(len(wanted) * WATCHED_BYTES)

    def on_wait_over(self) -> None:
        self._memory.give(len(self._wanted) * WATCHED_BYTES)
        for want in self._wanted:
            want.unbind()
            want.watcher = None


class WatchedPartition:
    """One partition of a fetch, and what the peer was last told about it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "is_fresh",
        "key",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "sent_high_watermark",
        "sent_log_start",
        "sent_stable_offset",
        "watcher",
    )

    def __init__(
        self,
        key: FetchKey,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
    ) -> None:
        self.key = key
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.is_fresh = True
        """The position was sent with this request: a replica says with it how far it is."""
        self.watcher: FetchWatcher | None = None
        self.partition: Partition | None = None
        """Where it was found, as long as this is told of its changes."""
        self.sent_high_watermark = -1
        self.sent_stable_offset = -1
        self.sent_log_start = -1

    @property
    def size_bytes(self) -> int:
        return WATCHED_BYTES + len(self.key.topic)

    def update(self, newer: WatchedPartition) -> None:
        if self.log_start_offset == IN_DOUBT:
            self._forget_told()  # of answers for comparison a follower believes nothing
        self.fetch_offset = newer.fetch_offset
        self.max_bytes = newer.max_bytes
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch
        self.log_start_offset = newer.log_start_offset
        self.is_fresh = True

    def knows(self, high_watermark: int, stable_offset: int, log_start: int) -> bool:
        return (
            self.sent_high_watermark == high_watermark
            and self.sent_log_start == log_start
            and self.sent_stable_offset == stable_offset
        )

    def told(self, high_watermark: int, stable_offset: int, log_start: int) -> bool:
        """Remember what an answer says; False if the peer knew all of it already."""
        if self.knows(high_watermark, stable_offset, log_start):
            return False
        self.sent_high_watermark = high_watermark
        self.sent_stable_offset = stable_offset
        self.sent_log_start = log_start
        return True

    def _forget_told(self) -> None:
        self.sent_high_watermark = self.sent_stable_offset = self.sent_log_start = -1

    # --- between the partition and whoever reads -----------------------------------------------------------

    def bind(self, partition: Partition) -> None:
        """From now on the partition tells this when it moves."""
        watcher = self.watcher
        if watcher is not None and self.partition is not partition:
            self.unbind()
            self.partition = partition
            partition.watch(self, as_replica=watcher.as_replica, read_committed=watcher.read_committed)

    def unbind(self) -> None:
        if self.partition is not None:
            self.partition.unwatch(self)
            self.partition = None

    def on_append(self, size: int) -> None:
        watcher = self.watcher
        if watcher is not None:
            watcher.dirty[self] = None
            if watcher.waiting is not None:
                watcher.waiting.on_more(size)

    def on_commit(self, size: int) -> None:
        watcher = self.watcher
        if watcher is not None:
            watcher.dirty[self] = None
            if watcher.hears_commits and watcher.waiting is not None:
                watcher.waiting.on_more(AT_ONCE if watcher.as_replica else size)

    def on_step_back(self) -> None:
        if self.watcher is not None:
            self.watcher.stale[self] = None

    def on_change(self) -> None:
        """The partition may not even be there any more: it is looked up again. And all is told again: a
        follower drops what it was told in an epoch that has ended."""
        self.unbind()
        self._forget_told()
        watcher = self.watcher
        if watcher is not None:
            watcher.dirty[self] = None
            if watcher.waiting is not None:
                watcher.waiting.on_more(AT_ONCE)
