"""A broker that leads, and the parts of one that follows it, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from headrace.broker.fetch.sessions import SessionCache
from headrace.broker.fetch.watched_partition import FetchKey, WatchedPartition
from headrace.broker.replicas.host import ReplicaHost
from headrace.broker.replicas.manager import ReplicaManager
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.replicas.truncations import Truncations
from headrace.broker.requests.errors import code_of
from headrace.broker.runtime.environment import Environment
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.flusher import Flusher
from headrace.config.broker import BrokerConfig
from headrace.controller.image import MetadataImage
from headrace.core.errors import HeadraceError
from headrace.core.ids import TopicPartition
from headrace.core.ports_network import PeerReset, PeerUnavailable
from headrace.log.partition_log import PartitionLog
from headrace.metrics.registry import TopicMetrics
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.fetch_codec import FetchRequestView, parse_fetch
from headrace.protocol.headers import frame_response, read_request_header
from headrace.protocol.messages.api_versions_response import ApiVersionsResponse
from headrace.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from headrace.replication.assignment import Assignment
from headrace.replication.partition import Partition
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, batch_of, open_at, topic_config

LEADER, FOLLOWER = 1, 2
EPOCH = 500
"""The follower's broker epoch."""
TOPIC_ID = UUID(int=5)


def partition_of(
    broker_id: int, index: int = 0, disk: SimulatedDisk | None = None, **settings: Any
) -> Partition:
    name = TopicPartition("orders", index)
    log = open_at(
        disk or SimulatedDisk(), f"/data{broker_id}", config=topic_config(**settings), partition=name
    )
    return Partition(name, TOPIC_ID, log, TopicMetrics())


def row(
    leader: int = LEADER, epoch: int = 0, isr: tuple[int, ...] = (1, 2), version: int | None = None
) -> Assignment:
    return Assignment(leader, epoch, epoch * 10 if version is None else version, (1, 2, 3), isr)


def append(partition: Partition, *values: bytes) -> None:
    batch, header = batch_of(*values)
    partition.append(batch, header, acks=1, now_ms=NOW)


class MemoryLink:
    """Frames to a leader in this process. A fetch that finds nothing waits until the leader is poked."""

    def __init__(self, leader: MemoryLeader) -> None:
        self.leader = leader
        self.is_open = True
        self._waiting: list[tuple[asyncio.Future[memoryview], memoryview]] = []
        self._fetch: ServedFetch | None = None

    def send(self, frame: Any) -> asyncio.Future[memoryview]:
        if not self.is_open:
            raise PeerReset("closed")
        answer: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._waiting.append((answer, memoryview(bytes(frame))))
        asyncio.get_running_loop().call_soon(self.serve)
        return answer

    def serve(self) -> None:
        while self._waiting and self.is_open and not self.leader.is_silent:
            answer, frame = self._waiting[0]
            overtaken = len(self._waiting) > 1 and self.leader.heeds_nudges
            served = self._serve(frame, overtaken)
            if served is None:
                return
            del self._waiting[0]
            if not answer.done():
                answer.set_result(memoryview(served))

    def _serve(self, frame: memoryview, at_once: bool) -> bytes | None:
        header, at = read_request_header(frame)
        if header.api_key == ApiKey.API_VERSIONS:
            return frame_response(ApiVersionsResponse(), 0, header.correlation_id)[4:]
        assert header.api_version == 17
        if self._fetch is None:
            self._fetch = ServedFetch(self.leader, parse_fetch(frame, at, 17))
        answer = self._fetch.answer(at_once)
        if answer is None:
            return None
        self._fetch = None
        return frame_response(answer, 17, header.correlation_id)[4:]

    def close(self) -> None:
        self.is_open = False
        waiting, self._waiting = self._waiting, []
        for answer, _ in waiting:
            if not answer.done():
                answer.set_exception(PeerReset("the link broke"))


class MemoryLeader:
    """A broker that leads; also the dialer that finds it."""

    def __init__(self, *partitions: Partition) -> None:
        self.partitions = {each.topic_partition.partition: each for each in partitions}
        self.requests: list[FetchRequestView] = []
        self.errors: dict[int, int] = {}
        """Partitions that are answered with an error code."""
        self.refusal = 0
        """Answers the next request with this code."""
        self.links: list[MemoryLink] = []
        self.failure: PeerUnavailable | None = None
        self.is_silent = False
        self.heeds_nudges = True
        self.dials = 0
        self.forget_sessions()

    async def dial(self, host: str, port: int, *, timeout: float) -> MemoryLink:
        self.dials += 1
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        self.links.append(MemoryLink(self))
        return self.links[-1]

    def poke(self) -> None:
        """Something was appended, or has changed."""
        for link in self.links:
            link.serve()

    def forget_sessions(self) -> None:
        self.sessions = SessionCache(10, lambda: 1000 + len(self.requests))

    def positions(self, index: int = 0) -> list[int]:
        """The offsets that were asked for, of one partition."""
        return [
            item.fetch_offset
            for request in self.requests
            for _, rows in request.topics
            for item in rows
            if item.partition == index
        ]


class ServedFetch:
    """Fetch 17, served as a broker does."""

    def __init__(self, leader: MemoryLeader, request: FetchRequestView) -> None:
        leader.requests.append(request)
        self._leader = leader
        self._request = request
        self._refusal, leader.refusal = leader.refusal, 0
        wanted = [
            WatchedPartition(
                _key(topic, item[0]), item.fetch_offset, item.max_bytes, item[1], item.last_fetched_epoch
            )
            for topic, rows in request.topics
            for item in rows
        ]
        forgotten = [_key(topic, index) for topic, rows in request.forgotten for index in rows]
        try:
            self._context = leader.sessions.begin(
                request.session_id,
                request.session_epoch,
                wanted,
                forgotten,
                uses_topic_ids=True,
                now_ms=0,
            )
        except HeadraceError:
            self._refusal = int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)

    def answer(self, at_once: bool) -> FetchResponse | None:
        """None while there is nothing to say."""
        if self._refusal:
            return FetchResponse(error_code=self._refusal)
        rows = [row for want in self._context.wanted if (row := self._read(want)) is not None]
        if not rows and not at_once:
            return None
        return FetchResponse(
            session_id=self._context.session_id,
            responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=rows)] if rows else [],
        )

    def _read(self, want: WatchedPartition) -> PartitionData | None:
        index = want.key.partition
        answer = PartitionData(partition_index=index, high_watermark=-1)
        if index in self._leader.errors:
            answer.error_code = self._leader.errors[index]
            return answer
        partition = self._leader.partitions[index]
        try:
            partition.check_replica(want.current_leader_epoch)
        except HeadraceError as error:
            answer.error_code = code_of(error)
            return answer
        answer.log_start_offset = partition.log.log_start_offset
        if want.last_fetched_epoch >= 0:
            diverging = partition.diverging(want.last_fetched_epoch, want.fetch_offset)
            if diverging is not None:
                answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset = diverging
                return answer
        request = self._request
        partition.on_replica_fetch(request.replica_id, request.replica_epoch, want.fetch_offset, 0.0)
        found = partition.read_as_replica(want.fetch_offset, want.max_bytes)
        answer.records = found.file.pread(found.length, found.position)
        answer.high_watermark = partition.high_watermark
        news = want.told(partition.high_watermark, 0, partition.log.log_start_offset)
        return answer if answer.records or news else None


def _key(topic: str | UUID, index: int) -> FetchKey:
    assert isinstance(topic, UUID)
    return FetchKey("", topic, index)


class Clock:
    """The loop's own time, so that rests and timers agree."""

    def wall_ms(self) -> int:
        return 1_700_000_000_000

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class HeldFlusher:
    """Syncs when a test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[PartitionLog, Callable[[HeadraceError | None], None]]] = []

    def flush(self, log: PartitionLog, then: Callable[[HeadraceError | None], None] | None = None) -> None:
        assert then is not None
        self.asked.append((log, then))

    def on_truncated(self, log: PartitionLog) -> None:
        """What is left of it waits for the next flush."""

    def finish(self, error: HeadraceError | None = None) -> None:
        asked, self.asked = self.asked, []
        for log, then in asked:
            if error is None:
                job = log.take_flush()
                assert job is not None
                job.run()
                job.done()
            then(error)


class Channel:
    """The way to a controller that answers as a test tells it to."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.answers: list[Any] = []
        """Messages or exceptions, in turn; the last one stays."""
        self.held: asyncio.Event | None = None

    async def request(self, message: Any, answer: Any, *, timeout: float = 10.0) -> Any:
        self.requests.append(message)
        if self.held is not None:
            await self.held.wait()
        reply = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(reply):
            reply = reply(message)
        if isinstance(reply, Exception):
            raise reply
        assert isinstance(reply, answer)
        return reply


class Watchful:
    """Remembers which brokers were lost and which were reached."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def lost(self, broker_id: int) -> None:
        self.seen.append(("lost", broker_id))

    def reached(self, broker_id: int) -> None:
        self.seen.append(("reached", broker_id))


class Metadata:
    """An image, and where brokers listen."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.addresses: dict[int, tuple[str, int]] = {LEADER: ("leader", 9092)}

    def address_of(self, broker_id: int) -> tuple[str, int] | None:
        return self.addresses.get(broker_id)


class Host:
    """The parts of the broker that follows."""

    replicas: ReplicaManager
    """Of who makes one: what was truncated is followed again by it."""

    def __init__(self, leader: MemoryLeader | None = None, **properties: str) -> None:
        given = {"broker.id": str(FOLLOWER), "log.dirs": "/nowhere", "replica.fetch.backoff.ms": "100"}
        given.update({name.replace("_", "."): value for name, value in properties.items()})
        nothing: Any = None
        dialer: Any = leader
        environment = Environment(Clock(), nothing, nothing, dialer)
        self.runtime = Runtime(BrokerConfig.parse(given), environment, is_standalone=False)
        self.metadata: Any = Metadata()
        self.node: Any = SimpleNamespace(broker_epoch=EPOCH)
        self.channel = Channel()
        self.partitions = PartitionTable(lambda _topic, _index: True)
        self.flusher = HeldFlusher()
        self.damaged: list[tuple[TopicPartition, int]] = []
        self.truncations = Truncations(
            self.runtime,
            cast(Flusher, self.flusher),
            lambda partition: self.replicas.follow(partition),
            lambda partition: self.replicas.unfollow(partition),
            lambda partition, offset: self.damaged.append((partition.topic_partition, offset)),
            None,
        )
        self.suspicions: Any = Watchful()

    @property
    def parts(self) -> ReplicaHost:
        return ReplicaHost(
            self.runtime,
            self.metadata,
            self.node,
            self.channel,
            self.partitions,
            self.flusher,
            self.truncations,
            self.suspicions,
        )


async def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.001)
