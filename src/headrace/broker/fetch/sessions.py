"""Incremental fetch sessions (KIP-227). Pure: time is an argument.

A session remembers which partitions a consumer or follower fetches and what it was last told, so that
both sides send only what changed. Epochs order the requests of a session:

    epoch -1, any id    a full request without a session (ends the session of that id)
    epoch  0, any id    a full request that asks for a new session (ends the session of that id)
    epoch  n, id        the n-th incremental request
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple
from uuid import UUID

from headrace.core.errors import FetchSessionNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1
MIN_EVICTION_MS: Final = 120_000
"""A session younger than this, or used within this time, keeps its slot."""


class FetchKey(NamedTuple):
    """How a request names a partition: by topic name up to Fetch 12, by topic id from 13 on."""

    topic: str
    topic_id: UUID | None
    partition: int


class Wanted:
    """One partition of a fetch, and what the peer was last told about it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "key",
        "last_fetched_epoch",
        "max_bytes",
        "sent_high_watermark",
        "sent_log_start",
        "sent_stable_offset",
    )

    def __init__(
        self,
        key: FetchKey,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
    ) -> None:
        self.key = key
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.sent_high_watermark = -1
        self.sent_stable_offset = -1
        self.sent_log_start = -1

    def update(self, newer: Wanted) -> None:
        self.fetch_offset = newer.fetch_offset
        self.max_bytes = newer.max_bytes
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch

    def told(self, high_watermark: int, stable_offset: int, log_start: int) -> bool:
        """Remember what an answer says; False if the peer knew all of it already."""
        if (
            self.sent_high_watermark == high_watermark
            and self.sent_log_start == log_start
            and self.sent_stable_offset == stable_offset
        ):
            return False
        self.sent_high_watermark = high_watermark
        self.sent_stable_offset = stable_offset
        self.sent_log_start = log_start
        return True


class Session:
    __slots__ = ("created_ms", "epoch", "id", "partitions", "used_ms", "uses_topic_ids")

    def __init__(self, session_id: int, uses_topic_ids: bool, now_ms: int) -> None:
        self.id = session_id
        self.epoch = 1
        """The epoch that the next incremental request must carry."""
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.used_ms = now_ms
        self.partitions: OrderedDict[FetchKey, Wanted] = OrderedDict()
        """In the order in which they are read; a partition that gave data goes to the end."""


class FetchContext(NamedTuple):
    """What one request asks for, after its session has been consulted."""

    session: Session | None
    wanted: Iterable[Wanted]
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
    ) -> FetchContext:
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION:
                self._sessions.pop(session_id, None)
            if epoch == FINAL_EPOCH or not wanted:
                return FetchContext(None, wanted, NO_SESSION, False)
            session = self._create(wanted, uses_topic_ids, now_ms)
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
        for want in wanted:
            known = partitions.get(want.key)
            if known is None:
                partitions[want.key] = want
            else:
                known.update(want)
        for key in forgotten:
            partitions.pop(key, None)
        if not partitions:
            self._sessions.pop(session.id, None)
            return FetchContext(None, [], NO_SESSION, False)
        session.epoch = 1 if session.epoch == MAX_EPOCH else session.epoch + 1
        session.used_ms = now_ms
        self._sessions.move_to_end(session.id)
        return FetchContext(session, partitions.values(), session.id, True)

    def _create(self, wanted: list[Wanted], uses_topic_ids: bool, now_ms: int) -> Session | None:
        if len(self._sessions) >= self._slots and not self._evict(len(wanted), now_ms):
            return None
        session_id = self._random_id()
        while session_id in self._sessions or session_id == NO_SESSION:
            session_id = self._random_id()
        session = Session(session_id, uses_topic_ids, now_ms)
        for want in wanted:
            session.partitions[want.key] = want
        self._sessions[session_id] = session
        return session

    def _evict(self, new_size: int, now_ms: int) -> bool:
        """Make room: the least recently used if it is idle, else a smaller one that has had its time."""
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms > MIN_EVICTION_MS:
            del self._sessions[oldest.id]
            return True
        smallest = min(self._sessions.values(), key=lambda session: len(session.partitions))
        if len(smallest.partitions) < new_size and now_ms - smallest.created_ms > MIN_EVICTION_MS:
            del self._sessions[smallest.id]
            return True
        return False
