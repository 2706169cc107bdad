"""The control plane of a whole simulated cluster, one event at a time: what must end does end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, cast

import pytest

from headrace.broker.broker import Broker
from headrace.broker.cluster import description
from headrace.broker.cluster.membership import Membership
from headrace.broker.cluster.node import ClusterNode
from headrace.controller.image import Endpoint
from headrace.controller.store import MetadataStore
from headrace.core.errors import CorruptLog
from headrace.core.ports_coordination import SessionState
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.headers import LENGTH_SIZE, frame_request, read_response_header
from headrace.protocol.message import Message
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.elect_leaders_request import ElectLeadersRequest
from headrace.protocol.messages.envelope_request import EnvelopeRequest
from headrace.protocol.messages.envelope_response import EnvelopeResponse
from headrace.protocol.primitives import Reader
from headrace.security.principal import ANONYMOUS
from headrace.testing.simulation.coordination import SimulatedCoordination
from headrace.testing.simulation.virtual_loop import ProcessLoop
from tests.simulation.cluster import PORT, SimulatedCluster, SimulatedHost

T = TypeVar("T")


@contextmanager
def started() -> Iterator[SimulatedCluster]:
    cluster = SimulatedCluster(1)
    cluster.start()
    try:
        cluster.run_until(lambda: all(map(is_ready, cluster.hosts)), 30, "every broker is ready")
        yield cluster
    finally:
        for host in cluster.hosts:
            if host.process is not None:
                host.process.loop.kill()


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with started() as cluster:
        yield cluster


def is_ready(host: SimulatedHost) -> bool:
    return host.process is not None and host.process.is_ready


def is_active(cluster: SimulatedCluster) -> SimulatedHost:
    (host,) = [each for each in cluster.hosts if each.broker is not None and each.broker.controller.is_active]
    return host


def resigned(cluster: SimulatedCluster) -> SimulatedHost:
    return next(
        each for each in cluster.hosts if each.broker is not None and not each.broker.controller.is_active
    )


def running(host: SimulatedHost) -> Broker:
    assert host.broker is not None
    return host.broker


def begin(host: SimulatedHost, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    assert host.process is not None
    return host.process.loop.create_task(work)


def finish(cluster: SimulatedCluster, task: asyncio.Task[T], seconds: float) -> T:
    cluster.run_until(task.done, seconds, "the task ends")
    return task.result()


def enveloped(request: Message, version: int) -> EnvelopeRequest:
    return EnvelopeRequest(
        request_data=frame_request(request, version, 7, "test")[LENGTH_SIZE:],
        request_principal=b"",
        client_host_address=b"broker-9",
    )


def forwarded(host: SimulatedHost, request: Message, version: int) -> asyncio.Task[bytes]:
    frame = frame_request(request, version, 7, "test")[LENGTH_SIZE:]
    return begin(host, running(host).context.channel.forward(frame, ANONYMOUS, "client"))


NO_ELECTION = ElectLeadersRequest(election_type=9, topic_partitions=None, timeout_ms=1000)
"""The controller refuses it, and the answer has no place to say so."""


# --- forwarding -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pick", [is_active, resigned])
def test_a_request_that_cannot_be_answered_is_refused_at_once(cluster: SimulatedCluster, pick: Any) -> None:
    """Neither waited for for ever, nor sent to the controller again and again."""
    task = forwarded(pick(cluster), NO_ELECTION, 2)
    cluster.run_until(task.done, 2, "the request is refused")
    assert task.exception() is not None


def test_a_request_that_cannot_be_answered_does_not_disturb_others(cluster: SimulatedCluster) -> None:
    host = resigned(cluster)
    wanted = CreatableTopic(name="new", num_partitions=3, replication_factor=3, assignments=[], configs=[])
    bad = forwarded(host, NO_ELECTION, 2)
    good = forwarded(host, CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7)
    cluster.run_until(lambda: bad.done() and good.done(), 5, "both are settled")
    assert b"new" in good.result()
    assert bad.exception() is not None


def test_an_envelope_holds_only_what_is_forwarded(cluster: SimulatedCluster) -> None:
    """One in another, and again, would cost a copy of the rest each."""
    host = is_active(cluster)
    inner = enveloped(NO_ELECTION, 2)
    channel = running(host).context.channel
    answer = finish(cluster, begin(host, channel.request(enveloped(inner, 0), EnvelopeResponse)), 2)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_a_broker_that_stops_does_not_wait_for_what_nobody_can_decide(cluster: SimulatedCluster) -> None:
    host = resigned(cluster)
    broker = running(host)
    for other in cluster.hosts:
        if other is not host:
            other.wanted = False
            other.kill()
    cluster.cut_ensemble(host)
    task = forwarded(host, NO_ELECTION, 2)
    cluster.run_for(1)
    draining = begin(host, broker.context.in_flight.drain())
    cluster.run_until(lambda: task.done() and draining.done(), 2, "nothing is forwarded any more")


# --- stopping ---------------------------------------------------------------------------------------------


def creation(name: str) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=3, replication_factor=3, assignments=[], configs=[])
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000)


@pytest.mark.parametrize("pick", [is_active, resigned])
def test_a_broker_stops_while_the_coordination_service_is_away(cluster: SimulatedCluster, pick: Any) -> None:
    """Nothing can be committed, so whatever waits for a commit is not waited for. Its client is told why."""
    host = pick(cluster)
    host.wanted = False
    cluster.ensemble.lose_quorum()
    cluster.run_for(1)
    task = forwarded(host, creation("late"), 7)
    cluster.run_for(1)
    host.stop()
    cluster.run_until(lambda: not host.is_running, 45, "the broker has stopped")
    body = memoryview(task.result())
    _, at = read_response_header(body, CreateTopicsRequest.API_KEY, 7)
    (told,) = CreateTopicsResponse.decode(Reader(body, at), 7).topics
    assert told.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "cannot reach ZooKeeper" in (told.error_message or "")


# --- two processes with one broker id ---------------------------------------------------------------------


def register_twin(cluster: SimulatedCluster, host: SimulatedHost) -> None:
    """Another process, somewhere else, registers under the same broker id."""
    loop = ProcessLoop(cluster.scheduler, "twin")
    twin = SimulatedCoordination(cluster.ensemble, loop, "twin")
    broker = running(host)
    told = Membership(
        broker.runtime, broker.metadata, broker.storage.logs, broker.node.endpoints, twin
    ).describe()
    elsewhere = told._replace(endpoints=(Endpoint("PLAINTEXT", "nowhere", 9092),))

    async def register() -> None:
        await twin.start()
        await twin.register(told.broker_id, description.encode(elsewhere))

    finish(cluster, loop.create_task(register()), 5)


@pytest.mark.parametrize("pick", [is_active, resigned])
def test_a_process_that_was_replaced_ends(cluster: SimulatedCluster, pick: Any) -> None:
    """It would hold the controllership, or ask for metadata that it is refused, and never be of use again."""
    host = pick(cluster)
    host.wanted = False
    broker = running(host)
    register_twin(cluster, host)
    cluster.run_until(broker.runtime.failure.done, 10, "the process gives up")
    assert "broker.id" in str(broker.runtime.failure.result())


def test_a_session_that_was_lost_is_no_replacement(cluster: SimulatedCluster) -> None:
    brokers = [running(host) for host in cluster.hosts]
    before = [broker.node.broker_epoch for broker in brokers]
    cluster.ensemble.expire_all()
    cluster.run_until(
        lambda: all(
            broker.node.broker_epoch > epoch and broker.metadata.is_alive(broker.runtime.broker_id)
            for broker, epoch in zip(brokers, before, strict=True)
        ),
        30,
        "every broker is back",
    )
    assert not any(broker.runtime.failure.done() for broker in brokers)


# --- tasks that must not die in silence -------------------------------------------------------------------


def test_a_broker_that_cannot_register_again_says_so(
    cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError(5, "Input/output error")

    host = resigned(cluster)
    host.wanted = False
    broker = running(host)
    monkeypatch.setattr(description, "remember", broken)
    cluster.ensemble.expire_all()
    cluster.run_until(broker.runtime.failure.done, 20, "the broker gives up")


# --- what is on the disk ----------------------------------------------------------------------------------


def test_a_broker_starts_after_power_was_lost_behind_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint is synced, and a log that ends before it is refused: so the log was synced first."""
    monkeypatch.setitem(cast(Any, MetadataStore.__init__).__kwdefaults__, "checkpoint_after", 10)
    with started() as cluster:
        for number in range(5):
            finish(cluster, forwarded(is_active(cluster), creation(f"topic-{number}"), 7), 10)
        host = resigned(cluster)
        cluster.run_until(
            lambda: running(host).metadata.store.checkpoint_end > 0, 10, "there is a checkpoint"
        )
        host.wanted = False
        monkeypatch.setattr(host.disk, "crash", partial(host.disk.crash, keep=0.0))
        host.lose_power()
        cluster.run_for(5)
        host.start()
        cluster.run_until(lambda: is_ready(host), 20, "the broker is back")


# --- a start that does not succeed ------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0.0, 0.002, 0.004, 0.006, 0.008, 0.01, 0.02, 0.04, 0.08, 0.2, 1.0])
def test_a_start_that_is_broken_off_leaves_nothing_behind(
    cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """Wherever it was: no task, no session."""
    host = resigned(cluster)
    host.wanted = False
    host.stop()
    cluster.run_until(lambda: not host.is_running, 45, "the broker has stopped")
    monkeypatch.setattr(ClusterNode, "_on_delta", lambda *_: None)  # it is never admitted
    host.start()
    process = host.process
    assert process is not None
    (task,) = asyncio.all_tasks(process.loop)
    cluster.run_for(seconds)
    task.cancel()
    cluster.run_until(task.done, 10, "the start is broken off")
    cluster.run_for(0.1)
    assert asyncio.all_tasks(process.loop) == set()
    assert process.coordination is None or process.coordination.session is SessionState.LOST


def test_a_start_outlasts_a_coordination_service_that_goes_while_the_broker_registers(
    cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    register = Membership.register

    async def cut_off(membership: Membership) -> None:
        monkeypatch.setattr(Membership, "register", register)
        cluster.ensemble.lose_quorum()
        await register(membership)

    host = resigned(cluster)
    host.wanted = False
    host.stop()
    cluster.run_until(lambda: not host.is_running, 45, "the broker has stopped")
    monkeypatch.setattr(Membership, "register", cut_off)
    host.start()
    cluster.run_for(30)
    assert host.is_running
    assert not is_ready(host)
    cluster.ensemble.regain_quorum()
    cluster.run_until(lambda: is_ready(host), 30, "the broker is back")


def test_brokers_that_stop_right_after_each_other_all_end(cluster: SimulatedCluster) -> None:
    """The last one becomes controller, fences the one before it and hears of that while it stops itself."""
    for host in cluster.hosts:
        host.wanted = False
    while any(host.is_running for host in cluster.hosts):
        host = next(each for each in cluster.hosts if each.is_running)
        host.stop()
        cluster.run_until(lambda host=host: not host.is_running, 60, "the broker has stopped")  # type: ignore[misc]  # the default binds the loop's value


def test_a_node_that_cannot_be_read_is_passed_over(
    cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another version may write it. The metadata says where that broker is, too."""

    def unreadable(*_: object) -> None:
        raise CorruptLog("another version")

    holder, host = is_active(cluster), resigned(cluster)
    monkeypatch.setattr(description, "decode", unreadable)
    address = finish(cluster, begin(host, running(host).node.find_address(holder.broker_id)), 5)
    assert address == (holder.name, PORT)


def _has_followed(store: MetadataStore, cluster: SimulatedCluster) -> bool:
    return store.end == cluster.ensemble.end


def test_all_brokers_go_by_one_minimum_of_replicas(cluster: SimulatedCluster) -> None:
    """Otherwise a leader whose file says less than the controller's commits what an eligible leader lacks."""
    for host in cluster.hosts:
        broker = running(host)
        cluster.run_until(partial(_has_followed, broker.metadata.store, cluster), 10, "it has followed")
        assert broker.metadata.image.broker_configs(None)["min.insync.replicas"] == "2"


def test_metadata_that_zookeeper_has_lost_stops_no_broker(cluster: SimulatedCluster) -> None:
    """It came back with an older snapshot: nobody can go on from there, and no data is in danger."""
    ensemble = cluster.ensemble

    def is_led() -> bool:
        return any(running(host).controller.is_active for host in cluster.hosts)

    last = ensemble.batches.pop()
    ensemble.end = last.sequence
    ensemble.expire_all()
    cluster.run_until(lambda: not is_led(), 30, "the controllership is lost")
    cluster.run_for(30)
    assert not is_led()
    assert not any(running(host).runtime.failure.done() for host in cluster.hosts)
    ensemble.batches.append(last)
    ensemble.end = running(cluster.hosts[0]).metadata.store.end
    cluster.run_until(is_led, 30, "somebody is the active controller")
