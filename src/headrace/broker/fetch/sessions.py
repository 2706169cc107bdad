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

from headrace.broker.fetch.wanted import FetchKey, Interest, Wanted
from headrace.core.errors import FetchSessionNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1
MIN_EVICTION_MS: Final = 120_000
"""A session younger than this, or used within this time, keeps its slot."""


class Session(Interest):
    __slots__ = ("created_ms", "epoch", "id", "partitions", "used_ms", "uses_topic_ids")

    def __init__(self, session_id: int, uses_topic_ids: bool, now_ms: int, as_replica: bool = False) -> None:
        super().__init__(as_replica)
        self.id = session_id
        self.epoch = 1
        """The epoch that the next incremental request must carry."""
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.used_ms = now_ms
        self.partitions: dict[FetchKey, Wanted] = {}

    def want(self, want: Wanted) -> Wanted:
        """Follow a partition, or go on with it from another position: it has its turn now."""
        known = self.partitions.get(want.key)
        if known is None:
            self.partitions[want.key] = known = want
            want.interest = self
        else:
            known.update(want)
        self.news[known] = None
        return known

    def isolate(self, read_committed: bool) -> None:
        """Each request says it anew. From now on other offsets decide what there is to say."""
        self.read_committed = read_committed
        for want in self.partitions.values():
            want.unbind()
            self.news[want] = None

    def forget(self, key: FetchKey) -> None:
        want = self.partitions.pop(key, None)
        if want is not None:
            want.unbind()
            want.interest = None
            self.news.pop(want, None)
            self.overruled.pop(want, None)

    def repeat_overruled(self) -> None:
        for want in self.overruled:
            want.is_fresh = True
            self.news[want] = None
        self.overruled.clear()

    def close(self) -> None:
        for want in self.partitions.values():
            want.unbind()


class FetchContext(NamedTuple):
    """What one request asks for, after its session has been consulted."""

    session: Session | None
    wanted: Collection[Wanted]
    """All partitions, whether they have news or not."""
    session_id: int
    """For the response: 0 if there is no session."""
    incremental: bool
    """Only what changed is answered."""


class SessionCache:
    def __init__(self, slots: int, random_id: Callable[[], int]) -> None:
        self._slots = slots
        self._random_id = random_id
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
        wanted: list[Wanted],
        forgotten: Iterable[FetchKey],
        *,
        uses_topic_ids: bool,
        now_ms: int,
        as_replica: bool = False,
    ) -> FetchContext:
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION:
                self._end(session_id)
            if epoch == FINAL_EPOCH or not wanted:
                return FetchContext(None, wanted, NO_SESSION, False)
            session = self._create(wanted, uses_topic_ids, now_ms, as_replica)
            return FetchContext(session, wanted, session.id if session else NO_SESSION, False)
        session = self._sessions.get(session_id)
        if session is None:
            raise FetchSessionNotFound(f"no fetch session {session_id}: begin a new one")
        if session.uses_topic_ids != uses_topic_ids:
            raise FetchSessionTopicIdError("a fetch session cannot change between topic names and topic ids")
        if session.epoch != epoch:
            raise InvalidFetchSessionEpoch(f"fetch session {session_id} expects {session.epoch}, not {epoch}")
        return self._continue(session, wanted, forgotten, now_ms)

    def _continue(
        self, session: Session, wanted: list[Wanted], forgotten: Iterable[FetchKey], now_ms: int
    ) -> FetchContext:
        partitions = session.partitions
        if session.overruled:
            session.repeat_overruled()
        for want in wanted:
            session.want(want)
        for key in forgotten:
            session.forget(key)
        if not partitions:
            self._end(session.id)
            return FetchContext(None, (), NO_SESSION, False)
        session.epoch = 1 if session.epoch == MAX_EPOCH else session.epoch + 1
        session.used_ms = now_ms
        self._sessions.move_to_end(session.id)
        return FetchContext(session, partitions.values(), session.id, True)

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def _create(
        self, wanted: list[Wanted], uses_topic_ids: bool, now_ms: int, as_replica: bool
    ) -> Session | None:
        if len(self._sessions) >= self._slots and not self._evict(len(wanted), now_ms):
            return None
        session_id = self._random_id()
        while session_id in self._sessions or session_id == NO_SESSION:
            session_id = self._random_id()
        session = Session(session_id, uses_topic_ids, now_ms, as_replica)
        for want in wanted:
            session.want(want)
        self._sessions[session_id] = session
        return session

    def _evict(self, new_size: int, now_ms: int) -> bool:
        """Make room: the least recently used if it is idle, else a smaller one that has had its time."""
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms > MIN_EVICTION_MS:
            self._end(oldest.id)
            return True
        smallest = min(self._sessions.values(), key=lambda session: len(session.partitions))
        if len(smallest.partitions) < new_size and now_ms - smallest.created_ms > MIN_EVICTION_MS:
            self._end(smallest.id)
            return True
        return False
