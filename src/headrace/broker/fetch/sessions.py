"""Incremental fetch sessions (KIP-227). Pure: time is an argument.

A session remembers which partitions a consumer or follower fetches and what it was last told, so that
both sides send only what changed. Epochs order the requests of a session:

    epoch -1, any id    a full request without a session (ends the session of that id)
    epoch  0, any id    a full request that asks for a new session (ends the session of that id)
    epoch  n, id        the n-th incremental request
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

from headrace.broker.fetch.watched_partition import FetchKey, FetchWatcher, WatchedPartition
from headrace.core.errors import FetchSessionNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from headrace.core.memory import MemoryShare, unlimited
from headrace.security.principal import ANONYMOUS, Principal

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1
MIN_EVICTION_MS: Final = 120_000
"""A session younger than this, or used within this time, keeps its slot."""


class Session(FetchWatcher):
    __slots__ = (
        "created_ms",
        "epoch",
        "id",
        "owner",
        "partitions",
        "rights_class",
        "size_bytes",
        "used_ms",
        "uses_topic_ids",
    )

    def __init__(
        self,
        session_id: int,
        uses_topic_ids: bool,
        now_ms: int,
        as_replica: bool = False,
        owner: Principal = ANONYMOUS,
    ) -> None:
        super().__init__(as_replica)
        self.id = session_id
        self.epoch = 1
        """The epoch that the next incremental request must carry."""
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.used_ms = now_ms
        self.partitions: dict[FetchKey, WatchedPartition] = {}
        self.size_bytes = 0
        """What `partitions` take in memory."""
        self.owner = owner
        self.rights_class = 0
        """With which rights it was read last; 0 before the first time, when everything is read anyway."""

    def want(self, want: WatchedPartition) -> WatchedPartition:
        """Follow a partition, or go on with it from another position: it has its turn now."""
        known = self.partitions.get(want.key)
        if known is None:
            self.partitions[want.key] = known = want
            self.size_bytes += want.size_bytes
            want.watcher = self
        else:
            known.update(want)
        self.dirty[known] = None
        return known

    def isolate(self, read_committed: bool) -> None:
        """Each request says it anew. From now on other offsets decide what there is to say."""
        self.read_committed = read_committed
        for want in self.partitions.values():
            want.unbind()
            self.dirty[want] = None

    def look_at_all_if_changed(self, rights_class: int) -> None:
        """Others read now, or ACLs have changed: each partition is told whether it may still be read."""
        if self.rights_class not in (0, rights_class):
            for want in self.partitions.values():
                self.dirty[want] = None
        self.rights_class = rights_class

    def forget(self, key: FetchKey) -> None:
        want = self.partitions.pop(key, None)
        if want is not None:
            self.size_bytes -= want.size_bytes
            want.unbind()
            want.watcher = None
            self.dirty.pop(want, None)
            self.stale.pop(want, None)

    def repeat_overruled(self) -> None:
        for want in self.stale:
            want.is_fresh = True
            self.dirty[want] = None
        self.stale.clear()

    def close(self) -> None:
        for want in self.partitions.values():
            want.unbind()


class FetchContext(NamedTuple):
    """What one request asks for, after its session has been consulted."""

    session: Session | None
    wanted: Collection[WatchedPartition]
    """All partitions, whether they have news or not."""
    session_id: int
    """For the response: 0 if there is no session."""
    incremental: bool
    """Only what changed is answered."""


class Newcomer(NamedTuple):
    """A session that is to be, or one that has grown, for which others may have to go."""

    session_id: int
    size_bytes: int
    as_replica: bool


class SessionCache:
    def __init__(self, slots: int, random_id: Callable[[], int], memory: MemoryShare | None = None) -> None:
        self._slots = slots
        self._random_id = random_id
        self._memory = memory or unlimited("fetch sessions")
        """Invariant: what all sessions take is counted in it."""
        self._sessions: OrderedDict[int, Session] = OrderedDict()
        """Least recently used first."""

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def begin(
        self,
        session_id: int,
        epoch: int,
        wanted: list[WatchedPartition],
        forgotten: Iterable[FetchKey],
        *,
        uses_topic_ids: bool,
        now_ms: int,
        as_replica: bool = False,
        owner: Principal = ANONYMOUS,
    ) -> FetchContext:
        """Sessions of others are as if they were not there."""
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if len(wanted) > 1:  # each partition once, and the last mention counts
                wanted = list({want.key: want for want in wanted}.values())
            if session_id != NO_SESSION:
                self.end_own(owner, session_id)
            if epoch == FINAL_EPOCH or not wanted:
                return FetchContext(None, wanted, NO_SESSION, False)
            session = self._create(wanted, uses_topic_ids, now_ms, as_replica, owner)
            return FetchContext(session, wanted, session.id if session else NO_SESSION, False)
        session = self._of(owner, session_id)
        if session is None:
            raise FetchSessionNotFound(f"no fetch session {session_id}: begin a new one")
        if session.uses_topic_ids != uses_topic_ids:
            raise FetchSessionTopicIdError("a fetch session cannot change between topic names and topic ids")
        if session.epoch != epoch:
            raise InvalidFetchSessionEpoch(f"fetch session {session_id} expects {session.epoch}, not {epoch}")
        return self._continue(session, wanted, forgotten, now_ms)

    def _of(self, owner: Principal, session_id: int) -> Session | None:
        session = self._sessions.get(session_id)
        if session is None or session.owner is owner or session.owner == owner:
            return session
        return None

    def end_own(self, owner: Principal, session_id: int) -> None:
        if self._of(owner, session_id) is not None:
            self.end(session_id)

    def _continue(
        self, session: Session, wanted: list[WatchedPartition], forgotten: Iterable[FetchKey], now_ms: int
    ) -> FetchContext:
        partitions, size = session.partitions, session.size_bytes
        if session.stale:
            session.repeat_overruled()
        for want in wanted:
            session.want(want)
        for key in forgotten:
            session.forget(key)
        if session.size_bytes != size:
            self._memory.take(session.size_bytes - size)
            grown = Newcomer(session.id, session.size_bytes, session.as_replica)
            if session.size_bytes > size and not self._make_room(0, grown, now_ms):
                self.end(session.id)
                raise FetchSessionNotFound("there is no memory for a fetch session of this size")
        if not partitions:
            self.end(session.id)
            return FetchContext(None, (), NO_SESSION, False)
        session.epoch = 1 if session.epoch == MAX_EPOCH else session.epoch + 1
        session.used_ms = now_ms
        self._sessions.move_to_end(session.id)
        return FetchContext(session, partitions.values(), session.id, True)

    def end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._memory.give(session.size_bytes)
            session.close()

    def _create(
        self,
        wanted: list[WatchedPartition],
        uses_topic_ids: bool,
        now_ms: int,
        as_replica: bool,
        owner: Principal,
    ) -> Session | None:
        if len(self._sessions) >= self._slots and not self._evict(len(wanted), now_ms):
            return None
        size = sum(want.size_bytes for want in wanted)
        if not self._make_room(size, Newcomer(NO_SESSION, size, as_replica), now_ms):
            return None
        session_id = self._random_id()
        while session_id in self._sessions or session_id == NO_SESSION:
            session_id = self._random_id()
        session = Session(session_id, uses_topic_ids, now_ms, as_replica, owner)
        for want in wanted:
            session.want(want)
        self._memory.take(session.size_bytes)
        self._sessions[session_id] = session
        return session

    def _make_room(self, more: int, newcomer: Newcomer, now_ms: int) -> bool:
        """Within the memory of all sessions: those go first that are idle, then what is much larger than
        `newcomer`. So a few that follow everything do not keep the others out, and nobody is driven out by an
        equal. Followers stay as long as it is consumers who ask."""
        while not self._memory.has_room(more):
            self._memory.refusals += 1
            victim = self._victim(newcomer, now_ms)
            if victim is None:
                return False
            self.end(victim.id)
        return True

    def _victim(self, newcomer: Newcomer, now_ms: int) -> Session | None:
        others = [
            each
            for each in self._sessions.values()
            if each.id != newcomer.session_id and (newcomer.as_replica or not each.as_replica)
        ]
        if not others:
            return None
        if now_ms - others[0].used_ms > MIN_EVICTION_MS:
            return others[0]
        largest = max(others, key=lambda each: each.size_bytes)
        return largest if largest.size_bytes > 2 * newcomer.size_bytes else None

    def _evict(self, new_size: int, now_ms: int) -> bool:
        """Make room: the least recently used if it is idle, else a smaller one that has had its time."""
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms > MIN_EVICTION_MS:
            self.end(oldest.id)
            return True
        smallest = min(self._sessions.values(), key=lambda session: len(session.partitions))
        if len(smallest.partitions) < new_size and now_ms - smallest.created_ms > MIN_EVICTION_MS:
            self.end(smallest.id)
            return True
        return False
