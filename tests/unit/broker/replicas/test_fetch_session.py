"""The follower's session, and against the leader's: both must always agree on what is fetched from where."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.broker.fetch.sessions import SessionCache
from headrace.broker.fetch.watched_partition import FetchKey, WatchedPartition
from headrace.broker.replicas.fetch_session import FetchSession, Followed, SessionRequest
from headrace.core.errors import HeadraceError
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.replication.following import FetchPosition

TOPICS = (UUID(int=1), UUID(int=2))
MAX_BYTES = 1000


class BrokerLifecycle:
    """A partition that stands where a test puts it."""

    def __init__(self, topic: UUID = TOPICS[0], index: int = 0, offset: int = 0) -> None:
        self.topic_id = topic
        self.topic_partition = TopicPartition("t", index)
        self.position: FetchPosition | None = FetchPosition(offset, 3, 2, 0)

    def fetch_position(self) -> FetchPosition | None:
        return self.position

    def move(self, offset: int) -> None:
        self.position = FetchPosition(offset, 3, 2, 0)


Member = Followed[BrokerLifecycle]


def new_session() -> FetchSession[BrokerLifecycle]:
    return FetchSession(MAX_BYTES)


def follow(session: FetchSession[BrokerLifecycle], index: int = 0, offset: int = 0) -> Member:
    one = Followed(BrokerLifecycle(index=index, offset=offset))
    session.touch(one)
    return one


def named(request: SessionRequest) -> dict[tuple[bytes, int], int]:
    return {(topic, wanted[0]): wanted[2] for topic, rows in request.topics for wanted in rows}


def dropped(request: SessionRequest) -> list[int]:
    return [index for _, indexes in request.forgotten for index in indexes]


def established(*indexes: int) -> tuple[FetchSession[BrokerLifecycle], list[Member]]:
    session = new_session()
    members = [follow(session, index) for index in indexes]
    session.request()
    assert session.on_answer(0, 77)
    return session, members


def test_the_first_request_names_everything() -> None:
    session = new_session()
    follow(session, 0, offset=5)
    follow(session, 1, offset=6)
    request = session.request()
    assert (request.session_id, request.epoch) == (0, 0)
    assert request.topics == [(TOPICS[0].bytes, [(0, 3, 5, 2, 0, MAX_BYTES), (1, 3, 6, 2, 0, MAX_BYTES)])]
    assert not session.is_empty


def test_later_ones_name_what_has_changed() -> None:
    session, (one, two) = established(0, 1)
    assert session.request() == SessionRequest(77, 1, [], ())
    session.on_answer(0, 77)
    one.partition.move(9)
    session.touch(one)
    session.touch(two)
    request = session.request()
    assert (request.session_id, request.epoch) == (77, 2)
    assert named(request) == {(one.topic, 0): 9}
    assert one.sent == one.partition.position


def test_one_change_alone() -> None:
    session, (one, _) = established(0, 1)
    one.partition.move(9)
    session.touch(one)
    assert named(session.request()) == {(one.topic, 0): 9}


def test_what_is_no_longer_wanted_is_forgotten_once() -> None:
    session, (one, two) = established(0, 1)
    session.remove(one)
    assert one.sent is None
    request = session.request()
    assert dropped(request) == [0]
    session.on_answer(0, 77)
    assert dropped(session.request()) == []
    session.remove(two)
    session.request()
    assert session.is_empty


def test_what_comes_back_before_it_is_forgotten_is_named_and_not_forgotten() -> None:
    """A leader takes in what a request names and drops what it forgets: both would end in dropping it."""
    session, (one, _) = established(0, 1)
    session.remove(one)
    session.touch(one)
    request = session.request()
    assert named(request) == {(one.topic, 0): 0}
    assert dropped(request) == []


def test_another_partition_object_takes_the_place_of_a_removed_one() -> None:
    session, (one, _) = established(0, 1)
    session.remove(one)
    again = follow(session, 0, offset=4)
    request = session.request()
    assert named(request) == {(one.topic, 0): 4}
    assert dropped(request) == []
    session.remove(again)
    session.on_answer(0, 77)
    assert dropped(session.request()) == [0]


def test_a_new_role_is_named_even_if_the_position_is_the_same() -> None:
    session, (one,) = established(0)
    session.renew(one)
    assert one.sent is None
    assert named(session.request()) == {(one.topic, 0): 0}


def test_a_partition_without_a_position_leaves() -> None:
    session, (one, two) = established(0, 1)
    one.partition.position = None
    session.touch(one)
    request = session.request()
    assert dropped(request) == [0]
    assert session.unready == [one]
    assert session.members == [two]
    session = new_session()
    alone = follow(session)
    alone.partition.position = None
    assert session.request().topics == []
    assert session.is_empty


def test_a_leader_without_room_for_sessions_gets_full_requests() -> None:
    session = new_session()
    one = follow(session)
    for _ in range(3):
        request = session.request()
        assert (request.session_id, request.epoch) == (0, 0)
        assert named(request) == {(one.topic, 0): 0}
        assert session.on_answer(0, 0)


def test_a_session_that_the_leader_has_lost_begins_anew() -> None:
    session, (one,) = established(0)
    session.request()
    assert not session.on_answer(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    request = session.request()
    assert (request.session_id, request.epoch) == (0, 0)
    assert named(request) == {(one.topic, 0): 0}


def test_a_session_out_of_step_is_ended_by_the_new_one() -> None:
    for code in (ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR):
        session, _ = established(0)
        session.request()
        assert not session.on_answer(code, 0)
        request = session.request()
        assert (request.session_id, request.epoch) == (77, 0)


def test_a_new_link_begins_anew() -> None:
    session, (one,) = established(0)
    gone = follow(session, 5)
    session.remove(gone)
    session.on_new_link()
    request = session.request()
    assert (request.session_id, request.epoch) == (0, 0)
    assert named(request) == {(one.topic, 0): 0}
    assert request.forgotten == ()


def test_the_epoch_of_a_session_goes_round() -> None:
    session, _ = established(0)
    session._epoch = 2**31 - 1
    session.request()
    session.on_answer(0, 77)
    assert session.request().epoch == 1


# --- both sides ------------------------------------------------------------------------------------------


class Leader:
    """The leader's side, which serves requests in any way that the protocol allows."""

    def __init__(self, slots: int) -> None:
        self._next = 0
        self.cache = SessionCache(slots, self._random_id)
        self.known: dict[tuple[UUID, int], int] = {}

    def _random_id(self) -> int:
        self._next += 1
        return self._next

    def serve(self, request: SessionRequest) -> tuple[int, int]:
        wanted = [
            WatchedPartition(FetchKey("", UUID(bytes=topic), row[0]), row[2], row[5])
            for topic, rows in request.topics
            for row in rows
        ]
        forgotten = [
            FetchKey("", UUID(bytes=topic), index) for topic, rows in request.forgotten for index in rows
        ]
        try:
            context = self.cache.begin(
                request.session_id, request.epoch, wanted, forgotten, uses_topic_ids=True, now_ms=0
            )
        except HeadraceError:
            return int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND), 0
        self.known = {
            (each.key.topic_id, each.key.partition): each.fetch_offset
            for each in context.wanted
            if each.key.topic_id is not None
        }
        return 0, context.session_id


steps = st.lists(
    st.tuples(
        st.sampled_from(["move", "remove", "renew", "hide", "round", "round", "forget", "break"]),
        st.integers(0, 5),
        st.integers(1, 9),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(steps=steps, slots=st.sampled_from([0, 1, 5]))
def test_leader_and_follower_agree_after_every_round(steps: list[tuple[str, int, int]], slots: int) -> None:
    session = new_session()
    leader = Leader(slots)
    members = [Followed(BrokerLifecycle(TOPICS[number % 2], number)) for number in range(6)]
    followed: dict[Member, None] = {}
    for action, number, amount in [*steps, ("round", 0, 0), ("round", 0, 0)]:
        one = members[number]
        match action:
            case "move":
                one.partition.position = FetchPosition(amount, 3, 2, 0)
                followed[one] = None
                session.touch(one)
            case "remove":
                followed.pop(one, None)
                session.remove(one)
            case "renew":
                followed[one] = None
                session.renew(one)
            case "hide":
                one.partition.position = None
                if one in followed:
                    session.touch(one)
            case "forget":
                leader.cache = SessionCache(slots, leader._random_id)
            case "break":
                session.on_new_link()
            case _:
                request = session.request()
                for hidden in session.unready:
                    followed.pop(hidden, None)
                session.unready.clear()
                if session.is_empty:
                    session.restart()
                    continue
                if session.on_answer(*leader.serve(request)):
                    expected = {
                        (each.partition.topic_id, each.index): position.fetch_offset
                        for each in followed
                        if (position := each.partition.position) is not None
                    }
                    assert leader.known == expected
                    assert all(each.sent == each.partition.position for each in followed)
