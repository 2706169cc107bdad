"""The follower's side of a fetch session (KIP-227). Pure.

The leader remembers which partitions this follower fetches and from where. A request therefore names only
those whose position has changed since they were last named, and those that are no longer wanted. Looking at a
partition costs something, so a request looks only at those that somebody has touched: an answer was about
them, or the metadata gave them a new role.
"""

from __future__ import annotations

from typing import Final, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.replica_fetch_codec import ForgottenTopics, WantedPartition, WantedTopics
from headrace.replication.following import FetchPosition

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
MAX_EPOCH: Final = 2**31 - 1


class Follower(Protocol):
    """What a session asks of a partition."""

    @property
    def topic_partition(self) -> TopicPartition: ...
    @property
    def topic_id(self) -> UUID: ...
    def fetch_position(self) -> FetchPosition | None: ...


F = TypeVar("F", bound=Follower)


class Followed(Generic[F]):
    """One partition as one fetcher knows it."""

    __slots__ = ("failures", "in_session", "index", "partition", "sent", "topic")

    def __init__(self, partition: F) -> None:
        self.partition = partition
        self.topic = partition.topic_id.bytes
        self.index = partition.topic_partition.partition
        self.sent: FetchPosition | None = None
        """What the leader was last told. An answer is for this; None: no answer about it is wanted."""
        self.in_session = False
        """The leader has it in its session. Only then it has to be told to forget it."""
        self.failures = 0
        """In a row, for the pause after the next one."""


class SessionRequest(NamedTuple):
    session_id: int
    epoch: int
    topics: WantedTopics
    forgotten: ForgottenTopics


class FetchSession(Generic[F]):
    """Invariants: whoever is in the leader's session is a member, and `_active` is how many are."""

    __slots__ = ("_active", "_changed", "_epoch", "_forgotten", "_id", "_max_bytes", "_members", "unready")

    def __init__(self, max_bytes: int) -> None:
        """`max_bytes`: what is asked for each partition at once."""
        self._max_bytes = max_bytes
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        # All three are ordered sets. A forgotten one was in the leader's session and is no longer wanted.
        self._members: dict[Followed[F], None] = {}
        self._changed: dict[Followed[F], None] = {}
        self._forgotten: dict[tuple[bytes, int], None] = {}
        self._active = 0
        self.unready: list[Followed[F]] = []
        """They had no position when they were looked at, and are members no more: for the caller to keep."""

    def __len__(self) -> int:
        return len(self._members)

    @property
    def members(self) -> list[Followed[F]]:
        return list(self._members)

    @property
    def is_empty(self) -> bool:
        """The leader would wait for nothing: no partition is in the session after the last request."""
        return not self._active

    # --- who takes part ---------------------------------------------------------------------------------

    def touch(self, one: Followed[F]) -> None:
        """Take it in, or look at it again: it is named in the next request if its position has changed."""
        if one not in self._members:
            self._members[one] = None
            if self._forgotten.pop((one.topic, one.index), self) is None:
                # The leader still has it: naming and forgetting it in one request would only forget it.
                one.in_session = True
                self._active += 1
        self._changed[one] = None

    def remove(self, one: Followed[F]) -> None:
        """It is no longer fetched: an answer that is on its way is not wanted."""
        one.sent = None
        self._changed.pop(one, None)
        if one in self._members:
            del self._members[one]
            self._forget(one)

    def renew(self, one: Followed[F]) -> None:
        """Its role has changed: what the leader was told belongs to another epoch."""
        one.sent = None
        self.touch(one)

    def _forget(self, one: Followed[F]) -> None:
        if one.in_session:
            one.in_session = False
            self._active -= 1
            self._forgotten[one.topic, one.index] = None

    # --- requests and answers ---------------------------------------------------------------------------

    def request(self) -> SessionRequest:
        """What to send now. The positions in it count as sent."""
        if self._epoch == INITIAL_EPOCH:
            return self._full()
        changed = self._changed
        if len(changed) == 1 and not self._forgotten:
            (one,) = changed
            changed.clear()
            wanted = self._wanted(one)
            if not self._forgotten:
                named: WantedTopics = () if wanted is None else ((one.topic, (wanted,)),)
                return SessionRequest(self._id, self._epoch, named, ())
            return SessionRequest(self._id, self._epoch, (), self._take_forgotten())
        topics = self._take_changed()
        return SessionRequest(self._id, self._epoch, topics, self._take_forgotten())

    def _full(self) -> SessionRequest:
        """All there is, and a new session, which also ends the one of this id."""
        for one in self._members:
            one.sent = None
            one.in_session = False
        self._active = 0
        self._forgotten.clear()
        self._changed = dict.fromkeys(self._members)
        return SessionRequest(self._id, INITIAL_EPOCH, self._take_changed(), ())

    def _take_changed(self) -> WantedTopics:
        by_topic: dict[bytes, list[WantedPartition]] = {}
        changed, self._changed = self._changed, {}
        for one in changed:
            wanted = self._wanted(one)
            if wanted is not None:
                by_topic.setdefault(one.topic, []).append(wanted)
        return list(by_topic.items())

    def _wanted(self, one: Followed[F]) -> WantedPartition | None:
        position = one.partition.fetch_position()
        if position is None:
            self.remove(one)
            self.unready.append(one)
            return None
        if position == one.sent:
            return None
        one.sent = position
        if not one.in_session:
            one.in_session = True
            self._active += 1
        return (
            one.index,
            position.current_leader_epoch,
            position.fetch_offset,
            position.last_fetched_epoch,
            position.log_start_offset,
            self._max_bytes,
        )

    def _take_forgotten(self) -> ForgottenTopics:
        if not self._forgotten:
            return ()
        by_topic: dict[bytes, list[int]] = {}
        for topic, index in self._forgotten:
            by_topic.setdefault(topic, []).append(index)
        self._forgotten.clear()
        return list(by_topic.items())

    def on_answer(self, error_code: int, session_id: int) -> bool:
        """Whether the answer's partitions count. If not, the next request begins a new session."""
        if error_code:
            if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._id = NO_SESSION
            self.restart()
            return False
        if self._epoch == INITIAL_EPOCH:
            # A leader without room for a session answers with none: each request is a full one then.
            self._id = session_id
            self._epoch = INITIAL_EPOCH if session_id == NO_SESSION else 1
        else:
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1
        return True

    def restart(self) -> None:
        """The next request names everything, as after a broken link: nobody knows what the leader knows."""
        self._epoch = INITIAL_EPOCH

    def on_new_link(self) -> None:
        """The leader may be another process, which never had this session."""
        self._id = NO_SESSION
        self.restart()
