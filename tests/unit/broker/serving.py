"""As much of a broker as it takes to serve Produce and Fetch, over simulated disks and a hand-made image."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, NamedTuple, cast
from uuid import UUID

from headrace.broker.cluster.metadata_cache import Node
from headrace.broker.cluster.metadata_partition import METADATA_PARTITION, METADATA_TOPIC_ID
from headrace.broker.fetch.delayed_fetch import FetchPurgatory
from headrace.broker.fetch.read_result import ColdPart
from headrace.broker.fetch.sessions import SessionCache
from headrace.broker.fetch.wide_fetches import WideFetches
from headrace.broker.handlers import fetch, produce
from headrace.broker.produce.produce_purgatory import ProducePurgatory
from headrace.broker.produce.refused_batches import RefusedBatches
from headrace.broker.quotas.client_quotas import UNLIMITED
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.replicas.throttle import DirectionThrottles
from headrace.broker.requests.context import RequestContext
from headrace.broker.requests.in_flight import InFlightRequests
from headrace.broker.runtime.turns import Turns
from headrace.broker.runtime.work_thread import WorkThread
from headrace.broker.security.security import Security
from headrace.broker.storage.flusher import Flusher
from headrace.config.broker import BrokerConfig
from headrace.core.ids import TopicPartition
from headrace.core.memory import unlimited
from headrace.core.ports import Clock, FileRange
from headrace.core.timers import TimerQueue
from headrace.log.read_ahead import ReadAhead
from headrace.log.read_state import ColdRead
from headrace.metrics.histogram import LatencyHistogram
from headrace.metrics.registry import BrokerMetrics
from headrace.network.connection import Connection
from headrace.network.listener import Endpoint
from headrace.network.response import DelayedResponse, Response
from headrace.protocol.headers import frame_request, read_request_header
from headrace.protocol.message import Message
from headrace.replication.partition import Partition
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, batch_of, open_at, topic_config
from tests.unit.replication.replicas import row

TOPIC, TOPIC_ID = "orders", UUID(int=7)
LOCAL = 1


class Registration(NamedTuple):
    broker_id: int
    epoch: int = 100
    rack: str | None = None
    fenced: bool = False


class Topic:
    """A topic as the image has it: broker 9 leads everything, in epoch 9."""

    def __init__(self, name: str, topic_id: UUID, size: int) -> None:
        self.name, self.topic_id, self._size = name, topic_id, size

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and index < self._size

    def leader(self, _: int) -> int:
        return 9

    def leader_epoch(self, _: int) -> int:
        return 9


class Image:
    def __init__(self, size: int) -> None:
        self._topic = Topic(TOPIC, TOPIC_ID, size)
        self.links: dict[str, Any] = {}
        self.brokers = {number: Registration(number) for number in (1, 2, 3, 9)}

    def topic(self, name: str) -> Topic | None:
        return self._topic if name == TOPIC else None

    def topic_by_id(self, topic_id: UUID) -> Topic | None:
        return self._topic if topic_id == TOPIC_ID else None


class ColdReadsInPlace:
    """No thread: what is cold is there when `bring` returns."""

    def bring(self, parts: Sequence[ColdPart], then: Callable[[], None]) -> None:
        for part in parts:
            cold = part.read
            assert isinstance(cold, ColdRead)
            job = ReadAhead(
                part.partition.log, cold.segment, cold.offset, part.max_bytes, transactions=cold.transactions
            )
            job.run()
            assert not job.done()
        then()


class Server:
    """Leads partitions of one topic with broker 2 in sync and broker 3 out of it."""

    def __init__(self, partitions: int = 1, *, isr: tuple[int, ...] = (1, 2), **settings: str) -> None:
        self.loop = asyncio.get_running_loop()
        self.disk = SimulatedDisk()
        self.now = 0.0
        self.checkpoints = 0
        self.metadata_fetches: list[tuple[int, int]] = []
        self._threads = ThreadPoolExecutor(1)
        # A real one: compiled handlers take nothing that only looks like it.
        self._endpoint = Endpoint(self.loop, self._threads, max_frame_bytes=1 << 20)
        ours, self._peer = socket.socketpair()
        self.connection = Connection(self._endpoint, ours, "host-2", "PLAINTEXT")
        self._endpoint.connections.add(self.connection)
        names = {name.replace("_", "."): value for name, value in settings.items()}
        self.image = Image(partitions)
        self._size = partitions
        self.throttle = DirectionThrottles(LOCAL, for_leader=True)
        self.cold_reads: Any = ColdReadsInPlace()
        self.runtime: Any = SimpleNamespace(
            clock=SimpleNamespace(wall_ms=lambda: NOW, monotonic=lambda: self.now),
            config=BrokerConfig.parse({"broker.id": "1", "log.dirs": "/nowhere", **names}),
            loop=self.loop,
            metrics=BrokerMetrics(),
            memory=SimpleNamespace(
                fetch_sessions=unlimited("fetch sessions"), held=unlimited("held requests")
            ),
            timers=TimerQueue(self.loop),
            turns=Turns(self.loop, cast(Clock, SimpleNamespace(monotonic=lambda: 0.0, wall_ms=lambda: NOW))),
            work_thread=WorkThread(self.loop),
            monotonic_ms=lambda: int(self.now * 1000),
        )
        self.metadata_partition = self._open_metadata()
        self.metadata: Any = SimpleNamespace(
            image=self.image,
            partition=self.metadata_partition,
            exists=self._exists,
            nodes=lambda _: [Node(number, f"host-{number}", 9092, None) for number in self.image.brokers],
            is_alive=lambda broker_id: not self.image.brokers[broker_id].fenced,
        )
        stub = SimpleNamespace(
            security=Security("PLAINTEXT"),
            runtime=self.runtime,
            metadata=self.metadata,
            partitions=PartitionTable(self._exists),
            node=SimpleNamespace(
                on_metadata_fetch=lambda broker_id, epoch, *_: self.metadata_fetches.append(
                    (broker_id, epoch)
                )
            ),
            storage=SimpleNamespace(
                logs=SimpleNamespace(quarantined_ends={}),
                flusher=Flusher(self.loop, self._threads, LatencyHistogram()),
                maintenance=SimpleNamespace(checkpoint=self._checkpoint),
            ),
            replicas=SimpleNamespace(throttles=SimpleNamespace(leader=self.throttle)),
            fetches=SimpleNamespace(
                purgatory=FetchPurgatory(self.loop),
                sessions=SessionCache(10, iter(range(500, 600)).__next__),
                wide=WideFetches(),
                cold_reads=self.cold_reads,
            ),
            produces=SimpleNamespace(purgatory=ProducePurgatory(self.loop), refused=RefusedBatches()),
            peers=SimpleNamespace(hosts=SimpleNamespace(believe_replica=lambda *_: None)),
            in_flight=InFlightRequests(),
        )
        self.context = cast(RequestContext, stub)
        self.stub: Any = stub
        """The same, for a test that puts another part into it."""
        self.partitions = [self._host(index, isr) for index in range(partitions)]
        self.partition = self.partitions[0]

    def _exists(self, topic: str, index: int) -> bool:
        return topic == TOPIC and index < self._size

    def _open_metadata(self) -> Partition:
        log = open_at(self.disk, "/metadata", partition=METADATA_PARTITION)
        return Partition(METADATA_PARTITION, METADATA_TOPIC_ID, log, self.runtime.metrics.topic("metadata"))

    def _host(self, index: int, isr: tuple[int, ...]) -> Partition:
        name = TopicPartition(TOPIC, index)
        log = open_at(self.disk, f"/data-{index}", partition=name, config=topic_config())
        partition = Partition(name, TOPIC_ID, log, self.runtime.metrics.topic(TOPIC))
        partition.assign(row(LOCAL, 1, isr), LOCAL, 0.0)
        self.context.partitions.add(partition)
        return partition

    async def _checkpoint(self) -> None:
        self.checkpoints += 1

    def close(self) -> None:
        self._endpoint.close()
        self._peer.close()
        self._threads.shutdown()

    def append(self, index: int = 0, *values: bytes) -> None:
        batch, header = batch_of(*(values or (b"value",)))
        self.partitions[index].append(batch, header, acks=1, now_ms=NOW)

    # --- requests -----------------------------------------------------------------------------------------

    def fetch_frame(self, frame: bytes) -> Response:
        """A request without its length field."""
        view = memoryview(bytearray(frame))
        header, at = read_request_header(view)
        version, number = header.api_version, header.correlation_id
        return fetch.serve(self.context, version, number, view, at, self.connection, UNLIMITED)

    def ask(self, request: Message, version: int, most_bytes: int = UNLIMITED) -> Response:
        frame = memoryview(bytearray(frame_request(request, version, 1, "test")))[4:]
        header, at = read_request_header(frame)
        number = header.correlation_id
        if header.api_key == 1:
            return fetch.serve(self.context, version, number, frame, at, self.connection, most_bytes)
        return produce.serve(self.context, version, number, frame, at, self.connection)


def sent(answer: Response) -> memoryview:
    """The bytes of an answer without their length field, or of a pending one that is complete."""
    parts = answer.parts if isinstance(answer, DelayedResponse) else answer
    assert isinstance(parts, list), "there is no answer yet"
    whole = b"".join(
        part.file.pread(part.length, part.position) if isinstance(part, FileRange) else bytes(part)
        for part in parts
    )
    assert len(whole) - 4 == int.from_bytes(whole[:4], "big")
    return memoryview(whole)[4:]
