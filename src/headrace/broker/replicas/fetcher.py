"""Follows one leader broker: one link, one fetch in flight, for all partitions that are followed there.

The cost of a round decides what replication costs, so a round does little: a request of what has changed, an
answer parsed in place, an append. There is no timer per request: a watchdog looks at the fetcher each second.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from headrace.broker.replicas.backoff import Backoffs, rest_seconds
from headrace.broker.replicas.fetch_requests import encoder_of, longest_wait, parsed
from headrace.broker.replicas.fetch_session import FetchSession, Followed
from headrace.broker.replicas.fetch_wire import FIRST_PAUSE, LONGEST_PAUSE, FetchWire
from headrace.broker.replicas.group_commit import sync_all
from headrace.broker.replicas.host import FollowingPartition, ReplicaHost
from headrace.core.errors import DiskFull, HeadraceError
from headrace.core.ports_network import Link, PeerRefused, PeerReset, PeerSilent, PeerUnavailable
from headrace.core.tasks import spawn
from headrace.protocol.limits import ProtocolError
from headrace.protocol.replica_fetch_codec import (
    FetchedPartitionData,
    ReplicaFetchAnswer,
    parse_replica_fetch,
)
from headrace.replication.following import FetchOutcome

if TYPE_CHECKING:
    from headrace.broker.replicas.throttle import DirectionThrottles, Throttle

DIAL_SECONDS: Final = 3.0
BYTES_PER_TURN: Final = 1 << 20
PARTITIONS_PER_TURN: Final = 50
"""After so many bytes or partitions of an answer the loop has a turn."""
MARGIN: Final = 1 << 16
TOPICS_AT_ONCE: Final = 50

Member = Followed[FollowingPartition]


class ReplicaFetcher:
    def __init__(self, host: ReplicaHost, leader_id: int, throttles: DirectionThrottles) -> None:
        self.leader_id = leader_id
        self._host = host
        self._throttles = throttles
        self._session: FetchSession[FollowingPartition] = FetchSession(
            host.runtime.config.replica_fetch_max_bytes
        )
        self._by_topic: dict[bytes, dict[int, Member]] = {}
        """All partitions that this fetcher follows. Those that back off are not in the session."""
        self._backoffs = Backoffs(host.runtime.loop, host.runtime.timers, self._on_backed_off)
        self._wire = FetchWire(host.runtime, "the watchdog of a fetcher")
        self._address: tuple[str, int] | None = None
        self._correlation_id = 0
        self._was_answered = False
        self._followed_up: list[Member] | None = None
        """Partitions of an answer that `_follow_up` has taken, to be synced before the next request."""
        self._patience = longest_wait(host.runtime.config)
        self._encoder = encoder_of(host)
        self._task: asyncio.Task[None] | None = None

    # --- what the manager calls -------------------------------------------------------------------------

    def start(self) -> None:
        self._task = spawn(f"fetcher of broker {self.leader_id}", self._run(), self._host.runtime.loop)
        self._wire.watch()

    async def stop(self) -> None:
        self._backoffs.clear()
        self._wire.unwatch()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    @property
    def is_idle(self) -> bool:
        return not self._by_topic

    def follow(self, partition: FollowingPartition) -> None:
        """Begin to follow, or go on in a new epoch. Answers to requests of other epochs are dropped."""
        topic, index = partition.topic_id.bytes, partition.topic_partition.partition
        one = self._by_topic.setdefault(topic, {}).get(index)
        if one is None or one.partition is not partition:
            if one is not None:
                self._leave(one)
            one = self._by_topic[topic][index] = Followed(partition)
        elif one.sent is not None and (position := partition.fetch_position()) is not None:
            if one.sent == position:
                return  # what has changed, such as the ISR, is not part of a fetch
            if one.sent._replace(log_start_offset=position.log_start_offset) == position:
                # The answer in flight still applies, and the leader will not send it again.
                self._session.touch(one)
                self._wire.hurry()
                return
        one.failures = 0
        self._backoffs.remove(one)
        self._session.renew(one)
        self._wire.hurry()

    def unfollow(self, partition: FollowingPartition) -> None:
        """At once: an answer that is on its way is dropped."""
        topic = partition.topic_id.bytes
        partitions = self._by_topic.get(topic, {})
        one = partitions.pop(partition.topic_partition.partition, None)
        if one is not None:
            self._leave(one)
            if not partitions:
                del self._by_topic[topic]

    def _leave(self, one: Member) -> None:
        self._session.remove(one)
        self._backoffs.remove(one)

    def on_brokers_changed(self) -> None:
        """The leader may have moved, or may be back: do not sit out a pause."""
        link = self._wire.link
        if link is not None and self._host.metadata.address_of(self.leader_id) != self._address:
            link.close()
        self._wire.wake()

    # --- the life of the link ---------------------------------------------------------------------------

    async def _run(self) -> None:
        pause = FIRST_PAUSE
        try:
            while True:
                self._wire.begin()
                self._was_answered = False
                self._followed_up = None
                try:
                    link = self._wire.link = await self._dial()
                    await self._fetch(link)
                except PeerUnavailable as error:
                    self._on_broken(PeerSilent(str(error)) if self._wire.was_silent else error)
                except Exception as error:
                    self._host.runtime.log.error(
                        "a fetcher failed; it begins anew",
                        leader=self.leader_id,
                        error=repr(error),
                        exc_info=error,
                    )
                self._wire.close()
                if self._was_answered:
                    pause = FIRST_PAUSE
                await self._wire.rest(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            self._wire.close()

    def _on_broken(self, error: PeerUnavailable) -> None:
        if isinstance(error, (PeerReset, PeerRefused)):
            self._host.suspicions.lost(self.leader_id)
        self._host.runtime.log.info(
            "leader not reached", leader=self.leader_id, kind=type(error).__name__, error=str(error)
        )

    async def _dial(self) -> Link:
        host = self._host
        while (address := host.metadata.address_of(self.leader_id)) is None:
            await self._wire.rest(None)
        self._address = address
        return await host.runtime.environment.dialer.dial(*address, timeout=DIAL_SECONDS)

    # --- rounds -----------------------------------------------------------------------------------------

    async def _fetch(self, link: Link) -> None:
        """Fetch until the link breaks. Raises PeerUnavailable."""
        session = self._session
        self._patience = longest_wait(self._host.runtime.config)
        refusals = 0
        session.on_new_link()
        while True:
            frame = self._next_request()
            if frame is None:
                await self._wire.rest(None)
                continue
            last = await self._wire.exchange(link, frame, self._follow_up)
            unsynced, self._followed_up = self._followed_up, None
            if unsynced is None:
                answer = parsed(last, self._correlation_id)
                if not session.on_answer(answer.error_code, answer.session_id):
                    self._host.runtime.log.info(
                        "a fetch session ended", leader=self.leader_id, code=answer.error_code
                    )
                    await self._wire.rest(rest_seconds(refusals, self._host.runtime.config))
                    refusals += 1
                    continue
                self._on_answered()
                unsynced = await self._apply(answer)
            refusals = 0
            if unsynced:
                await sync_all(self._host, unsynced, self._back_off_after_failure)

    def _next_request(self) -> bytes | None:
        """None if there is nothing to ask for now."""
        session = self._session
        if self._encoder.replica_epoch != self._host.node.broker_epoch:
            # The broker has registered again. The leader must hear every position from this incarnation,
            # also unchanged ones, or it would not admit these replicas to an ISR again.
            self._encoder = encoder_of(self._host)
            session.restart()
        request = session.request()
        if session.unready:
            self._back_off_unready()
        if session.is_empty:
            session.restart()
            return None
        self._correlation_id = correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        self._wire.expect(self._patience)
        return self._encoder.encode(correlation_id, *request)

    def _follow_up(self, frame: memoryview) -> bytes | None:
        """Take a usual answer at once, and return the next request. Return None to let `_fetch` go on.

        With None, `_followed_up` says who takes the answer: a list if this method has taken it, None if
        `_fetch` still has to.
        """
        if len(frame) > BYTES_PER_TURN + MARGIN or self._throttles.is_limited:
            return None
        try:
            answer = parse_replica_fetch(frame)
        except ProtocolError:
            return None
        topics = answer.topics
        if answer.error_code or answer.correlation_id != self._correlation_id or len(topics) > TOPICS_AT_ONCE:
            return None
        if sum([len(fetched) for _, fetched in topics]) > PARTITIONS_PER_TURN:
            return None
        self._session.on_answer(0, answer.session_id)
        self._on_answered()
        now_ms = self._host.runtime.clock.wall_ms()
        unsynced: list[Member] = []
        for topic, fetched in topics:
            members = self._by_topic.get(topic)
            if members is None:
                continue
            for data in fetched:
                one = members.get(data.partition)
                if (
                    one is not None
                    and one.sent is not None
                    and self._take(one, data, now_ms)
                    and one.partition.must_sync_before_ack
                ):
                    unsynced.append(one)
        following = None if unsynced else self._next_request()
        if following is None:
            self._followed_up = unsynced
        return following

    def _on_answered(self) -> None:
        if not self._was_answered:
            self._was_answered = True
            self._host.suspicions.reached(self.leader_id)

    async def _apply(self, answer: ReplicaFetchAnswer) -> list[Member]:
        """Give each partition its data. Return those to sync before the next fetch reports their new ends."""
        clock = self._host.runtime.clock
        now_ms = clock.wall_ms()
        unsynced: list[Member] = []
        throttled = False
        size = count = 0
        for topic, fetched in answer.topics:
            for data in fetched:
                one = self._by_topic.get(topic, {}).get(data.partition)
                if one is None or one.sent is None:
                    continue  # it follows another leader since, or this one in another epoch
                if self._take(one, data, now_ms):
                    if one.partition.must_sync_before_ack:
                        unsynced.append(one)
                    throttle = self._throttle_of(one)
                    if throttle is not None:
                        throttled = True
                        throttle.record(len(data.records), clock.monotonic())
                size += len(data.records)
                count += 1
                if size >= BYTES_PER_TURN or count >= PARTITIONS_PER_TURN:
                    size = count = 0
                    await asyncio.sleep(0)
        if throttled:
            self._hold_throttled()
        return unsynced

    def _take(self, one: Member, data: FetchedPartitionData, now_ms: int) -> bool:
        """True if the log grew."""
        sent = one.sent
        assert sent is not None
        try:
            outcome = one.partition.on_fetched(sent, data, now_ms)
        except HeadraceError as error:
            # A failed directory, or a log that was deleted: the metadata or the operator will say more.
            if not isinstance(error, DiskFull):  # the directory logs that once
                self._host.runtime.log.warning(
                    "cannot follow the leader", partition=str(one.partition.topic_partition), error=str(error)
                )
            self._back_off_after_failure(one)
            return False
        if outcome >= FetchOutcome.WAIT_FOR_METADATA:
            self._back_off_after_failure(one)
            return False
        if outcome != FetchOutcome.STALE:
            one.failures = 0
        if outcome == FetchOutcome.TRUNCATING:
            self._session.remove(one)  # it is followed anew when that is done
            self._host.truncations.begin(one.partition)
            return False
        self._session.touch(one)
        return outcome == FetchOutcome.APPENDED

    # --- partitions that rest ---------------------------------------------------------------------------

    def _back_off_after_failure(self, one: Member) -> None:
        one.failures += 1
        self._back_off(one, rest_seconds(one.failures - 1, self._host.runtime.config))

    def _back_off_unready(self) -> None:
        unready, self._session.unready = self._session.unready, []
        for one in unready:
            self._back_off_after_failure(one)

    def _back_off(self, one: Member, seconds: float) -> None:
        self._session.remove(one)
        # Only if this fetcher still follows it: a failed disk unfollows it before the failure is reported.
        if self._by_topic.get(one.topic, {}).get(one.index) is one:
            self._backoffs.add(one, seconds)

    def _on_backed_off(self, over: list[Any]) -> None:
        for one in over:
            self._session.touch(one)
        self._wire.hurry()

    def _throttle_of(self, one: Member) -> Throttle | None:
        partition, throttles = one.partition, self._throttles
        if not throttles.is_limited or self._host.runtime.broker_id in partition.isr:
            return None
        return throttles.throttle_of(partition.log.config, one.index)

    def _hold_throttled(self) -> None:
        now = self._host.runtime.clock.monotonic()
        for one in list(self._session.members):
            throttle = self._throttle_of(one)
            seconds = 0.0 if throttle is None else throttle.seconds_over(now)
            if seconds > 0:
                self._back_off(one, seconds)
