"""Fetches from one broker of another cluster, for all partitions that are copied from there: one link, one
fetch in flight. It is built as the followers' fetcher is (replicas/fetcher.py), and costs what that costs.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from headrace.broker.linking.host import LinkHost
from headrace.broker.replicas.backoff import Backoffs, rest_seconds
from headrace.broker.replicas.fetch_requests import longest_wait, parsed
from headrace.broker.replicas.fetch_session import FetchSession, Followed
from headrace.broker.replicas.fetch_wire import FIRST_PAUSE, LONGEST_PAUSE, FetchWire
from headrace.core.errors import DiskFull, HeadraceError
from headrace.core.ports_network import Link, PeerUnavailable
from headrace.core.tasks import spawn
from headrace.protocol.limits import ProtocolError
from headrace.protocol.replica_fetch_codec import (
    CONSUMER,
    FetchedPartitionData,
    ReplicaFetchAnswer,
    ReplicaFetchEncoder,
    parse_replica_fetch,
)
from headrace.replication.continuity import agrees
from headrace.replication.linking import DAMAGED, LinkedPartition, LinkOutcome

if TYPE_CHECKING:
    from headrace.broker.linking.source import Source

CLIENT_ID: Final = "headrace-link"
BYTES_PER_TURN: Final = 1 << 20
PARTITIONS_PER_TURN: Final = 50
MARGIN: Final = 1 << 16

Member = Followed[LinkedPartition]


class LinkFetcher:
    def __init__(self, host: LinkHost, source: Source, leader_id: int) -> None:
        self.leader_id = leader_id
        self._host = host
        self._source = source
        self._session: FetchSession[LinkedPartition] = FetchSession(
            host.runtime.config.replica_fetch_max_bytes
        )
        self._by_place: dict[tuple[bytes, int], Member] = {}
        """By the source's topic and partition, which only one topic here is linked to."""
        self._backoffs = Backoffs(host.runtime.loop, host.runtime.timers, self._on_backed_off)
        self._wire = FetchWire(host.runtime, "the watchdog of a link")
        self._correlation_id = 0
        self._taken = False
        """`_follow_up` has taken the last answer, and nothing is to be asked for."""
        self._encoder: ReplicaFetchEncoder | None = None
        self._asking: dict[asyncio.Task[None], None] = {}
        self._task: asyncio.Task[None] | None = None
        self.error: str | None = None

    # --- what the source calls ----------------------------------------------------------------------------

    def start(self) -> None:
        self._task = spawn(f"link to broker {self.leader_id}", self._run(), self._host.runtime.loop)
        self._wire.watch()

    async def stop(self) -> None:
        self._backoffs.clear()
        self._wire.unwatch()
        tasks = [*self._asking, *(() if self._task is None else (self._task,))]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    @property
    def is_idle(self) -> bool:
        return not self._by_place

    def follow(self, linked: LinkedPartition) -> None:
        place = linked.topic_id.bytes, linked.topic_partition.partition
        one = self._by_place.get(place)
        if one is None or one.partition is not linked:
            if one is not None:
                self._leave(one)
            one = self._by_place[place] = Followed(linked)
        one.failures = 0
        self._backoffs.remove(one)
        self._session.renew(one)
        self._wire.hurry()

    def unfollow(self, linked: LinkedPartition) -> None:
        """At once: an answer that is on its way is dropped."""
        place = linked.topic_id.bytes, linked.topic_partition.partition
        one = self._by_place.get(place)
        if one is not None and one.partition is linked:
            del self._by_place[place]
            self._leave(one)

    def _leave(self, one: Member) -> None:
        self._session.remove(one)
        self._backoffs.remove(one)

    # --- the life of the link -----------------------------------------------------------------------------

    async def _run(self) -> None:
        pause = FIRST_PAUSE
        try:
            while True:
                self._wire.begin()
                self._taken = False
                try:
                    link, version = await self._source.dial(self.leader_id)
                    self._wire.link = link
                    self._encoder = self._make_encoder(version)
                    await self._fetch(link)
                except (PeerUnavailable, HeadraceError, OSError) as error:
                    self._on_broken(error)
                except Exception as error:
                    self._host.runtime.log.error(
                        "a link failed; it begins anew",
                        source=self._source.key.bootstrap,
                        leader=self.leader_id,
                        error=repr(error),
                        exc_info=error,
                    )
                self._wire.close()
                self._source.hurry()
                pause = FIRST_PAUSE if self.error is None else pause
                await self._wire.rest(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            self._wire.close()

    def _make_encoder(self, version: int) -> ReplicaFetchEncoder:
        config = self._host.runtime.config
        return ReplicaFetchEncoder(
            CLIENT_ID,
            replica_id=CONSUMER,
            replica_epoch=-1,
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            version=version,
        )

    def _on_broken(self, error: Exception) -> None:
        if str(error) != self.error:
            self._host.runtime.log.info(
                "leader at the source not reached",
                source=self._source.key.bootstrap,
                leader=self.leader_id,
                error=str(error),
            )
        self.error = str(error)

    # --- rounds -------------------------------------------------------------------------------------------

    async def _fetch(self, link: Link) -> None:
        """Fetch until the link breaks. Raises PeerUnavailable."""
        session, refusals = self._session, 0
        session.on_new_link()
        while True:
            frame = self._next_request()
            if frame is None:
                await self._wire.rest(None)
                continue
            last = await self._wire.exchange(link, frame, self._follow_up)
            taken, self._taken = self._taken, False
            if taken:
                continue
            answer = parsed(last, self._correlation_id)
            if not session.on_answer(answer.error_code, answer.session_id):
                self._source.hurry()
                await self._wire.rest(rest_seconds(refusals, self._host.runtime.config))
                refusals += 1
                continue
            refusals, self.error = 0, None
            await self._apply(answer)

    def _next_request(self) -> bytes | None:
        """None if there is nothing to ask for now."""
        session, encoder = self._session, self._encoder
        assert encoder is not None
        request = session.request()
        if session.unready:
            unready, session.unready = session.unready, []
            for one in unready:
                self._back_off(one)
        if session.is_empty:
            session.restart()
            return None
        self._correlation_id = correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        self._wire.expect(longest_wait(self._host.runtime.config))
        return encoder.encode(correlation_id, *request)

    def _follow_up(self, frame: memoryview) -> bytes | None:
        """Take a usual answer at once, and return the next request. None: `_fetch` shall look, and `_taken`
        says whether there is still something to take."""
        if len(frame) > BYTES_PER_TURN + MARGIN:
            return None
        try:
            answer = parse_replica_fetch(frame)
        except ProtocolError:
            return None
        if answer.error_code or answer.correlation_id != self._correlation_id:
            return None
        if sum([len(fetched) for _, fetched in answer.topics]) > PARTITIONS_PER_TURN:
            return None
        self._session.on_answer(0, answer.session_id)
        self.error = None
        now_ms = self._host.runtime.clock.wall_ms()
        for topic, fetched in answer.topics:
            for data in fetched:
                self._give(topic, data, now_ms)
        following = self._next_request()
        self._taken = following is None
        return following

    async def _apply(self, answer: ReplicaFetchAnswer) -> None:
        now_ms = self._host.runtime.clock.wall_ms()
        size = count = 0
        for topic, fetched in answer.topics:
            for data in fetched:
                self._give(topic, data, now_ms)
                size += len(data.records)
                count += 1
                if size >= BYTES_PER_TURN or count >= PARTITIONS_PER_TURN:
                    size = count = 0
                    await asyncio.sleep(0)

    def _give(self, topic: bytes, data: FetchedPartitionData, now_ms: int) -> None:
        one = self._by_place.get((topic, data.partition))
        if one is None or one.sent is None:
            return  # nobody copies it any more
        try:
            outcome = one.partition.on_fetched(one.sent, data, now_ms)
        except HeadraceError as error:
            if not isinstance(error, DiskFull):  # the directory logs that once
                self._host.runtime.log.warning(
                    "cannot copy from the source",
                    partition=str(one.partition.topic_partition),
                    error=str(error),
                )
            self._back_off(one)
            return
        self._react(one, outcome, data)

    def _react(self, one: Member, outcome: LinkOutcome, data: FetchedPartitionData | None) -> None:
        linked = one.partition
        if outcome in (LinkOutcome.APPENDED, LinkOutcome.UP_TO_DATE, LinkOutcome.STALE):
            one.failures = 0
            if outcome == LinkOutcome.APPENDED and linked.must_sync_before_ack:
                self._host.flusher.flush(linked.partition.log)
            self._session.touch(one)
        elif outcome == LinkOutcome.PROVE and data is not None:
            self._session.remove(one)
            kept = data._replace(records=memoryview(bytearray(data.records)))
            self._ask("compare with the source", self._prove(one, kept))
        elif outcome == LinkOutcome.TRUNCATING:
            self._host.truncations.begin(linked.partition)
            self._back_off(one)
        elif outcome == LinkOutcome.RANGE:
            self._session.remove(one)
            self._ask("ask the source for its ends", self._ask_range(one))
        elif outcome == LinkOutcome.STOPPED:
            self._session.remove(one)
            self._source.stopped(linked)
        else:
            if outcome == LinkOutcome.LEADER:
                self._source.hurry()
            elif linked.error_code == DAMAGED and not one.failures:
                self._host.runtime.log.warning(
                    "the source's answer is damaged; it is asked for again",
                    partition=str(linked.topic_partition),
                )
            self._back_off(one)

    # --- what takes longer --------------------------------------------------------------------------------

    def _ask(self, name: str, work: Any) -> None:
        task = spawn(name, work, self._host.runtime.loop)
        self._asking[task] = None
        task.add_done_callback(lambda done: self._asking.pop(done, None))

    async def _prove(self, one: Member, data: FetchedPartitionData) -> None:
        linked = one.partition
        log, end = linked.partition.log, linked.partition.log.end_offset
        try:
            own = log.read(end - 1, 1, limit=end, min_one=True)
            read = partial(own.file.pread, own.length, own.position)
            last = await self._host.runtime.loop.run_in_executor(self._host.threads, read)
            same = agrees(memoryview(last), data.records, end)
            if same is None:
                self._host.runtime.log.info(
                    "compaction left nothing to compare with the source",
                    partition=str(linked.topic_partition),
                )
            outcome = linked.proven(same, data, self._host.runtime.clock.wall_ms())
        except (HeadraceError, OSError) as error:
            self._host.runtime.log.warning(
                "cannot compare with the source", partition=str(linked.topic_partition), error=str(error)
            )
            outcome = LinkOutcome.BACK_OFF
        self._resume(one, outcome)

    async def _ask_range(self, one: Member) -> None:
        linked = one.partition
        lost = linked.lost_records
        try:
            outcome = linked.on_range(*await self._source.ends(linked))
        except (HeadraceError, OSError) as error:
            self._host.runtime.log.info(
                "the source does not tell its ends", partition=str(linked.topic_partition), error=str(error)
            )
            outcome = LinkOutcome.BACK_OFF
        if linked.lost_records != lost:
            self._host.runtime.log.warning(
                "records were deleted at the source before they were copied",
                partition=str(linked.topic_partition),
                records=linked.lost_records - lost,
                next_offset=linked.source_start,
            )
        self._resume(one, outcome)

    def _resume(self, one: Member, outcome: LinkOutcome) -> None:
        linked = one.partition
        if self._by_place.get((linked.topic_id.bytes, linked.topic_partition.partition)) is one:
            self._react(one, outcome, None)
            self._wire.hurry()
        elif outcome == LinkOutcome.TRUNCATING:
            self._host.truncations.begin(linked.partition)

    # --- partitions that rest -----------------------------------------------------------------------------

    def _back_off(self, one: Member) -> None:
        self._session.remove(one)
        one.failures += 1
        linked = one.partition
        if self._by_place.get((linked.topic_id.bytes, linked.topic_partition.partition)) is one:
            self._backoffs.add(one, rest_seconds(one.failures - 1, self._host.runtime.config))

    def _on_backed_off(self, over: list[Any]) -> None:
        now_ms = self._host.runtime.clock.wall_ms()
        for one in over:
            if one.partition.has_held:
                self._react(one, one.partition.append_held(now_ms), None)
            else:
                self._session.touch(one)
        self._wire.hurry()
