from __future__ import annotations

from itertools import count
from uuid import UUID

import pytest

from headrace.broker.fetch.sessions import FetchContext, SessionCache
from headrace.broker.fetch.wanted import FetchKey, Wanted
from headrace.core.errors import FetchSessionNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch


def cache(slots: int = 2) -> SessionCache:
    ids = count(100)
    return SessionCache(slots, lambda: next(ids))


def want(topic: str, partition: int = 0, offset: int = 0) -> Wanted:
    return Wanted(FetchKey(topic, None, partition), offset, 1000)


def begin(
    sessions: SessionCache,
    session_id: int,
    epoch: int,
    wanted: list[Wanted],
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
        begin(sessions, first.session_id, 1, [Wanted(FetchKey("a", UUID(int=1), 0), 0, 1)], ids=True)


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
