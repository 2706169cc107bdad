from __future__ import annotations

from itertools import count
from uuid import UUID

import pytest

from headrace.broker.fetch.sessions import FetchContext, SessionCache
from headrace.broker.fetch.watched_partition import FetchKey, WatchedPartition
from headrace.core.errors import FetchSessionNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from headrace.core.memory import MemoryShare
from headrace.security.principal import Principal


def cache(slots: int = 2) -> SessionCache:
    ids = count(100)
    return SessionCache(slots, lambda: next(ids))


def want(topic: str, partition: int = 0, offset: int = 0) -> WatchedPartition:
    return WatchedPartition(FetchKey(topic, None, partition), offset, 1000)


def begin(
    sessions: SessionCache,
    session_id: int,
    epoch: int,
    wanted: list[WatchedPartition],
    *,
    now_ms: int = 0,
    forgotten: tuple[FetchKey, ...] = (),
    ids: bool = False,
) -> FetchContext:
    return sessions.begin(session_id, epoch, wanted, forgotten, uses_topic_ids=ids, now_ms=now_ms)


def test_final_epoch_makes_no_session() -> None:
    sessions = cache()
    context = begin(sessions, 0, -1, [want("a")])
    assert context.session_id == 0
    assert not context.incremental
    assert len(sessions) == 0


def test_incremental_request_carries_all_partitions_of_the_session() -> None:
    sessions = cache()
    first = begin(sessions, 0, 0, [want("a"), want("b")])
    second = begin(sessions, first.session_id, 1, [want("b", offset=7)])
    assert [(w.key.topic, w.fetch_offset) for w in second.wanted] == [("a", 0), ("b", 7)]
    assert second.incremental
    third = begin(sessions, first.session_id, 2, [want("c")], forgotten=(FetchKey("a", None, 0),))
    assert [w.key.topic for w in third.wanted] == ["b", "c"]


def test_wrong_epoch_and_unknown_session_are_refused() -> None:
    sessions = cache()
    first = begin(sessions, 0, 0, [want("a")])
    with pytest.raises(InvalidFetchSessionEpoch):
        begin(sessions, first.session_id, 2, [])
    with pytest.raises(FetchSessionNotFound):
        begin(sessions, 99, 1, [])
    with pytest.raises(FetchSessionTopicIdError):
        begin(
            sessions, first.session_id, 1, [WatchedPartition(FetchKey("a", UUID(int=1), 0), 0, 1)], ids=True
        )


def test_a_full_request_ends_the_old_session() -> None:
    sessions = cache()
    first = begin(sessions, 0, 0, [want("a")])
    begin(sessions, first.session_id, -1, [want("a")])
    with pytest.raises(FetchSessionNotFound):
        begin(sessions, first.session_id, 1, [])


def test_forgetting_everything_ends_the_session() -> None:
    sessions = cache()
    first = begin(sessions, 0, 0, [want("a")])
    context = begin(sessions, first.session_id, 1, [], forgotten=(FetchKey("a", None, 0),))
    assert context.session_id == 0
    assert len(sessions) == 0


def test_a_full_cache_gives_no_session_until_one_is_idle() -> None:
    sessions = cache(slots=1)
    first = begin(sessions, 0, 0, [want("a")])
    assert begin(sessions, 0, 0, [want("b")], now_ms=10).session_id == 0
    late = begin(sessions, 0, 0, [want("b")], now_ms=200_000)
    assert late.session_id not in (0, first.session_id)


def test_a_larger_session_takes_the_slot_of_a_smaller_one_that_had_its_time() -> None:
    sessions = cache(slots=1)
    first = begin(sessions, 0, 0, [want("a")])
    begin(sessions, first.session_id, 1, [], now_ms=150_000)
    assert begin(sessions, 0, 0, [want("b")], now_ms=150_001).session_id == 0
    assert begin(sessions, 0, 0, [want("b"), want("c")], now_ms=150_002).session_id != 0


def test_told_reports_only_changes() -> None:
    wanted = want("a")
    assert wanted.told(5, 5, 0)
    assert not wanted.told(5, 5, 0)
    assert wanted.told(6, 5, 0)


def test_epoch_wraps_to_one() -> None:
    sessions = cache()
    context = begin(sessions, 0, 0, [want("a")])
    assert context.session is not None
    context.session.epoch = 2**31 - 1
    begin(sessions, context.session_id, 2**31 - 1, [])
    assert context.session.epoch == 1


class Limited:
    """A cache whose memory is enough for four partitions of a topic with a name of one letter."""

    def __init__(self) -> None:
        self.memory = MemoryShare("fetch sessions", 4 * want("a").size_bytes)
        ids = count(100)
        self.sessions = SessionCache(100, lambda: next(ids), self.memory)

    def begin(self, partitions: int, *, now_ms: int = 0, as_replica: bool = False) -> int:
        wanted = [want("a", number) for number in range(partitions)]
        return self.sessions.begin(
            0, 0, wanted, (), uses_topic_ids=False, now_ms=now_ms, as_replica=as_replica
        ).session_id


def test_sessions_beyond_their_memory_are_not_made() -> None:
    limited = Limited()
    assert limited.begin(4) != 0
    assert limited.begin(4, now_ms=1) == 0
    assert limited.begin(5, now_ms=1) == 0
    assert limited.memory.used_bytes == limited.memory.limit_bytes
    assert limited.memory.refusals == 2


def test_an_idle_session_gives_its_memory_to_a_new_one() -> None:
    limited = Limited()
    limited.begin(4)
    assert limited.begin(4, now_ms=200_000) != 0
    assert len(limited.sessions) == 1


def test_a_session_that_follows_much_gives_way_to_one_that_follows_little() -> None:
    limited = Limited()
    large = limited.begin(4)
    assert limited.begin(1) != 0
    with pytest.raises(FetchSessionNotFound):
        begin(limited.sessions, large, 1, [])


def test_a_consumer_drives_out_no_follower_and_a_follower_drives_out_consumers() -> None:
    limited = Limited()
    limited.begin(3)
    assert limited.begin(4, now_ms=1, as_replica=True) == 0
    follower = limited.begin(1, as_replica=True)
    assert follower != 0
    assert limited.begin(4, now_ms=1) == 0
    limited = Limited()
    follower = limited.begin(4, as_replica=True)
    assert limited.begin(1) == 0
    begin(limited.sessions, follower, 1, [])


def test_a_session_that_grows_beyond_the_memory_is_ended() -> None:
    limited = Limited()
    only = limited.begin(4)
    with pytest.raises(FetchSessionNotFound):
        begin(limited.sessions, only, 1, [want("b")])
    assert limited.memory.used_bytes == 0
    assert len(limited.sessions) == 0


def test_what_is_forgotten_costs_nothing() -> None:
    limited = Limited()
    only = limited.begin(2)
    begin(limited.sessions, only, 1, [want("a", 0, offset=9)], forgotten=(FetchKey("a", None, 1),))
    assert limited.memory.used_bytes == want("a").size_bytes
    begin(limited.sessions, only, -1, [])
    assert limited.memory.used_bytes == 0


def test_a_session_is_nobody_elses() -> None:
    """Who guesses its number neither continues it nor ends it."""
    sessions = cache(slots=5)
    alice, mallory = Principal("User", "alice"), Principal("User", "mallory")

    def ask(session_id: int, epoch: int, owner: Principal) -> FetchContext:
        wanted = [want("a")] if epoch == 0 else []
        return sessions.begin(session_id, epoch, wanted, [], uses_topic_ids=False, now_ms=0, owner=owner)

    mine = ask(0, 0, alice).session_id
    with pytest.raises(FetchSessionNotFound):
        ask(mine, 1, mallory)
    ask(mine, -1, mallory)
    ask(mine, 0, mallory)
    assert ask(mine, 1, Principal("User", "alice")).session_id == mine
    ask(mine, -1, alice)
    with pytest.raises(FetchSessionNotFound):
        ask(mine, 2, alice)
