"""A decided transaction is carried to all its partitions, whatever comes in between, and then completed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.transactions import marker_manager as ends_module
from headrace.broker.transactions.marker_appends import MarkerAppends
from headrace.broker.transactions.marker_manager import TransactionMarkerManager
from headrace.core.completion import Completion
from headrace.core.errors import (
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    NotCoordinator,
    NotEnoughReplicas,
    NotLeader,
    TransactionCoordinatorFenced,
)
from headrace.core.ids import TopicPartition
from headrace.core.ports_network import PeerRefused, PeerReset
from headrace.core.timers import TimerQueue
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.headers import LENGTH_SIZE, frame_response, read_request_header
from headrace.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest
from headrace.protocol.messages.write_txn_markers_response import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from headrace.protocol.primitives import Reader
from headrace.transactions.ending import Markers
from headrace.transactions.transaction import Producer

HERE, THERE, ELSEWHERE = 1, 2, 3
STATE_PARTITION, EPOCH = 7, 4
PRODUCER = Producer(100, 5)


class Link:
    def __init__(self, world: World, broker_id: int) -> None:
        self._world = world
        self._broker_id = broker_id
        self.is_open = True

    async def send(self, frame: Any) -> memoryview:
        header, at = read_request_header(memoryview(frame))
        request = WriteTxnMarkersRequest.decode(Reader(memoryview(frame), at), header.api_version)
        self._world.requests.append((self._broker_id, request))
        response = WriteTxnMarkersResponse()
        for marker in request.markers:
            topics = []
            for topic in marker.topics:
                rows = []
                for index in topic.partition_indexes:
                    code = self._world.judge(self._broker_id, topic.name, index)
                    rows.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
                topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=rows))
            response.markers.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
        if self._world.loses_answers:
            self._world.loses_answers -= 1
            self.is_open = False
            raise PeerReset("gone")
        answer = frame_response(response, header.api_version, header.correlation_id)
        return memoryview(answer)[LENGTH_SIZE:]

    def close(self) -> None:
        self.is_open = False


class World:
    """Two topics whose leaders move, brokers that answer, and the shard that is told of the completion."""

    def __init__(self) -> None:
        self.leaders: dict[tuple[str, int], int] = {("a", 0): HERE, ("a", 1): THERE, ("b", 0): THERE}
        self.alive = {HERE, THERE, ELSEWHERE}
        self.written: list[tuple[int, str, int]] = []
        self.refusals: list[ErrorCode] = []
        """What is answered before anything is written."""
        self.requests: list[tuple[int, WriteTxnMarkersRequest]] = []
        self.loses_answers = 0
        self.refused_dials = 0
        self.dials = 0
        self.state = SimpleNamespace(is_leader=True, leader_epoch=EPOCH)
        self.completions: list[tuple[str, Producer]] = []
        self.completion_errors: list[Exception] = []
        self.local_errors: list[Exception] = []
        runtime: Any = SimpleNamespace(
            broker_id=HERE,
            loop=asyncio.get_running_loop(),
            timers=TimerQueue(asyncio.get_running_loop()),
            clock=SimpleNamespace(wall_ms=lambda: 0),
            log=SimpleNamespace(info=lambda *_, **__: None, warning=lambda *_, **__: None),
            environment=SimpleNamespace(dialer=self),
        )
        metadata: Any = SimpleNamespace(
            image=SimpleNamespace(topic=self._topic),
            is_alive=lambda broker_id: broker_id in self.alive,
            address_of=lambda broker_id: ("host", broker_id),
        )
        partitions: Any = SimpleNamespace(find=lambda _topic, _index: self.state, get=self._local)
        coordinator: Any = SimpleNamespace(ask_partition=self._ask, hosted=self._hosted)
        flusher: Any = None  # what is appended goes to a shard
        markers = MarkerAppends(runtime.clock, partitions, flusher, {"a": coordinator, "b": coordinator})
        self.ends = TransactionMarkerManager(runtime, metadata, partitions, coordinator, markers)

    def _topic(self, name: str) -> Any:
        indexes = {index: leader for (topic, index), leader in self.leaders.items() if topic == name}
        if not indexes:
            return None

        class Topic(dict[int, int]):
            def leader(self, index: int) -> int:
                return self[index]

        return Topic(indexes)

    def _local(self, topic: str, index: int) -> Any:
        if self.leaders.get((topic, index)) != HERE:
            raise NotLeader("elsewhere")
        return SimpleNamespace(
            is_leader=True,
            topic_partition=TopicPartition(topic, index),
            log=SimpleNamespace(is_sealed=False, producers=SimpleNamespace(check_marker=self._check)),
        )

    def _check(self, *_: int) -> None:
        if self.local_errors:
            raise self.local_errors.pop(0)

    def _hosted(self, partition: Any) -> Any:
        def append_marker(*_: object, committed: bool) -> Completion[None]:
            self.written.append((HERE, *partition.topic_partition))
            completion: Completion[None] = Completion()
            completion.complete(None)
            return completion

        return SimpleNamespace(append_marker=append_marker)

    def judge(self, broker_id: int, topic: str, index: int) -> ErrorCode:
        if self.leaders.get((topic, index)) != broker_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.refusals:
            return self.refusals.pop(0)
        self.written.append((broker_id, topic, index))
        return ErrorCode.NONE

    async def dial(self, _host: str, port: int, *, timeout: float) -> Link:
        del timeout
        self.dials += 1
        if self.refused_dials:
            self.refused_dials -= 1
            raise PeerRefused("nobody listens")
        return Link(self, port)

    def _ask(self, index: int, operation: Callable[..., Any]) -> Completion[bool]:
        assert index == STATE_PARTITION
        completion: Completion[bool] = Completion()
        if self.completion_errors:
            completion.fail(self.completion_errors.pop(0))
            return completion

        def complete(transactional_id: str, producer: Producer, _now_ms: int) -> None:
            self.completions.append((transactional_id, producer))

        operation(SimpleNamespace(complete=complete), None, 0)
        completion.complete(True)
        return completion

    def begin(self, *, epoch: int = EPOCH, name: str = "payments", **partitions: tuple[int, ...]) -> None:
        markers = Markers(name, PRODUCER, True, partitions, 2)
        self.ends.begin(STATE_PARTITION, epoch, markers)

    async def until_done(self) -> None:
        async with asyncio.timeout(10):
            while len(self.ends):
                await asyncio.sleep(0.001)


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(ends_module, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(ends_module, "LONGEST_PAUSE", 0.002)
    world = World()
    yield world
    world.ends.stop()
    await asyncio.sleep(0)


EVERYWHERE = [(HERE, "a", 0), (THERE, "a", 1), (THERE, "b", 0)]


async def test_every_partition_gets_its_marker_then_it_is_completed(world: World) -> None:
    world.begin(a=(0, 1), b=(0,))
    assert not world.completions
    await world.until_done()
    assert world.written == EVERYWHERE
    assert world.completions == [("payments", PRODUCER)]
    ((_, request),) = world.requests  # one request to each broker
    (marker,) = request.markers
    assert (marker.producer_id, marker.producer_epoch) == PRODUCER
    assert marker.transaction_result
    assert marker.coordinator_epoch == EPOCH
    assert marker.transaction_version == 2


async def test_transactions_that_wait_together_go_together(world: World) -> None:
    world.begin(name="one", a=(1,))
    world.begin(name="two", b=(0,))
    await world.until_done()
    ((_, request),) = world.requests
    assert len(request.markers) == 2
    assert len(world.completions) == 2


async def test_whoever_waits_for_the_end_is_told(world: World) -> None:
    assert world.ends.when_over(STATE_PARTITION, "payments") is None
    world.begin(b=(0,))
    over = world.ends.when_over(STATE_PARTITION, "payments")
    assert over is not None
    assert world.ends.when_over(STATE_PARTITION, "orders") is None
    told: list[int] = []
    over.when_done(lambda _: told.append(len(world.completions)))
    assert not told
    await world.until_done()
    assert told == [1]


async def test_whoever_waits_for_the_end_is_told_of_a_stop(world: World) -> None:
    world.leaders["b", 0] = -1
    world.begin(b=(0,))
    over = world.ends.when_over(STATE_PARTITION, "payments")
    assert over is not None
    world.ends.stop()
    assert over.is_done


async def test_one_without_partitions_is_completed_at_once(world: World) -> None:
    world.begin()
    assert world.completions == [("payments", PRODUCER)]
    assert not len(world.ends)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
async def test_it_is_tried_until_it_succeeds(world: World, code: ErrorCode) -> None:
    world.refusals = [code] * 5
    world.begin(a=(1,))
    await world.until_done()
    assert world.written == [(THERE, "a", 1)]
    assert len(world.requests) == 6
    assert len(world.completions) == 1


async def test_here_it_is_tried_until_it_succeeds_too(world: World) -> None:
    world.local_errors = [NotEnoughReplicas("one is gone")] * 3
    world.begin(a=(0,))
    await world.until_done()
    assert world.written == [(HERE, "a", 0)]


async def test_a_lost_answer_means_another_try(world: World) -> None:
    world.loses_answers = 2
    world.begin(b=(0,))
    await world.until_done()
    assert world.written == [(THERE, "b", 0)] * 3
    assert len(world.completions) == 1
    assert world.dials == 3


async def test_a_host_that_refuses_is_asked_again(world: World) -> None:
    world.refused_dials = 3
    world.begin(b=(0,))
    await world.until_done()
    assert world.written == [(THERE, "b", 0)]


async def test_a_marker_follows_the_leader(world: World) -> None:
    world.refused_dials = 10_000
    world.begin(a=(1,))
    await asyncio.sleep(0.02)
    world.leaders["a", 1] = HERE
    await world.until_done()
    assert world.written == [(HERE, "a", 1)]


@pytest.mark.parametrize("leader", [-1, 9])
async def test_it_waits_for_a_leader_that_lives(world: World, leader: int) -> None:
    world.leaders["a", 1] = leader
    world.begin(a=(1,))
    await asyncio.sleep(0.02)
    assert not world.requests
    world.leaders["a", 1] = ELSEWHERE
    await world.until_done()
    assert world.written == [(ELSEWHERE, "a", 1)]


async def test_a_deleted_partition_needs_no_marker(world: World) -> None:
    del world.leaders["b", 0]
    world.begin(a=(0, 5), b=(0,))
    await world.until_done()
    assert world.written == [(HERE, "a", 0)]
    assert len(world.completions) == 1


async def test_a_partition_may_be_deleted_meanwhile(world: World) -> None:
    world.leaders["a", 1] = -1
    world.begin(a=(1,))
    await asyncio.sleep(0.01)
    del world.leaders["a", 1]
    await world.until_done()
    assert not world.written
    assert len(world.completions) == 1


async def test_a_later_epoch_in_the_partition_means_that_it_is_done(world: World) -> None:
    world.local_errors = [InvalidProducerEpoch("later")]
    world.begin(a=(0,))
    await world.until_done()
    assert len(world.completions) == 1


@pytest.mark.parametrize("local", [True, False])
async def test_a_replaced_coordinator_leaves_it_to_the_next(world: World, local: bool) -> None:
    world.local_errors = [TransactionCoordinatorFenced("later")] if local else []
    world.refusals = [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
    world.begin(a=(0 if local else 1,))
    await world.until_done()
    assert not world.completions


async def test_whoever_no_longer_leads_stops_trying(world: World) -> None:
    world.refusals = [ErrorCode.NOT_ENOUGH_REPLICAS] * 10_000
    world.begin(a=(1,))
    await asyncio.sleep(0.01)
    assert len(world.ends)
    world.state.leader_epoch = EPOCH + 1
    await world.until_done()
    assert not world.completions


async def test_a_second_term_begins_again_and_completes_once(world: World) -> None:
    world.leaders["a", 1] = -1
    world.begin(a=(1,))
    assert (world.ends.markers_to_route_again, world.ends.ends_to_write_again) == (1, 0)
    world.state.leader_epoch = EPOCH + 1
    world.begin(epoch=EPOCH + 1, a=(1,))
    world.leaders["a", 1] = THERE
    await world.until_done()
    assert world.written == [(THERE, "a", 1)]
    assert world.requests[0][1].markers[0].coordinator_epoch == EPOCH + 1
    assert len(world.completions) == 1


async def test_a_completion_waits_for_replicas(world: World) -> None:
    world.completion_errors = [CoordinatorNotAvailable("replicas are missing")] * 3
    world.begin(a=(0,))
    assert (world.ends.markers_to_route_again, world.ends.ends_to_write_again) == (0, 1)
    await world.until_done()
    assert len(world.completions) == 1


async def test_a_completion_of_another_leaders_is_not_ours(world: World) -> None:
    world.completion_errors = [NotCoordinator("lost")]
    world.begin(a=(0,))
    await world.until_done()
    assert not world.completions


async def test_nothing_begins_after_the_stop(world: World) -> None:
    world.leaders["a", 1] = -1
    world.begin(a=(1,))
    world.ends.stop()
    world.begin(a=(0,))
    assert not len(world.ends)
    assert not world.written
