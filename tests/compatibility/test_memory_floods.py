"""Peers that make the broker hold memory for them: together they get no more than the budget."""

from __future__ import annotations

import json
import resource
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.fetch_request import FetchPartition
from headrace.protocol.messages.fetch_response import FetchResponse
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.messages.join_group_response import JoinGroupResponse
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from headrace.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.records import NewRecord, encode_batch
from tests.broker_process import BrokerProcess, HeadraceProcess
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.memory_attackers import (
    MB,
    announced,
    connections,
    neighbour_is_served,
    peak_bytes,
    push,
    wait_until,
)
from tests.ports import own_port
from tests.requests import FETCH_BY_NAME, fetch_request
from tests.wire import Wire, request_frame

FRAME = 60 * MB
SLACK = FRAME + 40 * MB
"""A frame that grows is copied once, and the allocator keeps some of what it was given back."""


@pytest.fixture(autouse=True)
def many_descriptors() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2000:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4000), hard))


def started(directory: Path, **properties: object) -> HeadraceProcess:
    names = {name.replace("_", "."): str(value) for name, value in properties.items()}
    return HeadraceProcess(directory / "broker", {"socket.request.max.bytes": str(FRAME), **names})


def find_coordinator(broker: BrokerProcess, key_type: int = 0) -> None:
    """Returns when groups, or transactions, are coordinated."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"])
    with Wire(broker.port) as wire:
        wait_until(
            lambda: wire.ask(request, 4, FindCoordinatorResponse).coordinators[0].error_code == 0,
            "a coordinator",
        )


def joining(group: str, *, metadata: bytes = b"", member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )


@pytest.fixture(
    params=[
        {"queued_max_request_bytes": 120 * MB},
        {"headrace_peer_memory_bytes": 300 * MB},
    ],
    ids=["set", "as a part of the whole"],
)
def limited(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """Requests may take 120 MB: by their own property, or because the whole is limited."""
    with started(tmp_path, **request.param) as broker:
        yield broker


def test_fault_41_frames_that_are_begun_share_one_budget(limited: BrokerProcess) -> None:
    """Twenty peers announce a frame of 60 MB, send nearly all of it, and never end it."""
    neighbour_is_served(limited)
    before = limited.resident_bytes()
    allowed = before + 120 * MB + SLACK
    with connections(limited, 20) as held:
        for one in held:
            one.sendall(announced(FRAME - 4))
        push(held, FRAME - MB, stop=lambda: peak_bytes(limited) > allowed)
        assert peak_bytes(limited) <= allowed
        neighbour_is_served(limited)
        neighbour_is_served(limited, size=900_000)
        assert peak_bytes(limited) <= allowed


def test_fault_41_whoever_waits_for_memory_gets_it_from_those_who_stand_still(limited: BrokerProcess) -> None:
    """Frames that never end have taken the budget. A large request that comes later is served anyway."""
    with connections(limited, 2) as held:
        for one in held:
            one.sendall(announced(FRAME - 4))
        push(held, 10 * MB, stop=lambda: False)
        # An API that is not served: the broker has read the whole frame when it hangs up on it.
        with connections(limited, 1) as (late,):
            late.sendall(announced(FRAME - 4) + b"\x7f\xff\0\0" + b"\0" * 6)
            left = push([late], FRAME - 14, stop=lambda: False)
            while left[late] > 0:
                left = push([late], left[late], stop=lambda: False)
            late.setblocking(True)
            late.settimeout(60)
            with suppress(ConnectionResetError):
                assert late.recv(1) == b""


def test_fault_41_what_comes_behind_a_request_that_waits_is_counted(tmp_path: Path) -> None:
    """500 peers wait to become members, and send 200 KB behind that request."""
    properties = {"queued_max_request_bytes": FRAME, "group_initial_rebalance_delay_ms": 600_000}
    with started(tmp_path, **properties) as broker:
        neighbour_is_served(broker)
        find_coordinator(broker)
        before = broker.resident_bytes()
        behind = (request_frame(18, 0, 2, b"") * 10_000)[: 200 * 1024]
        with connections(broker, 500) as held:
            for number, one in enumerate(held):
                one.sendall(request_frame(11, 0, 1, joining(f"group-{number}").to_bytes(0)) + behind)
            neighbour_is_served(broker)
            assert peak_bytes(broker) <= before + 50 * MB


def test_fault_41_fetch_sessions_share_one_budget(tmp_path: Path) -> None:
    """130 sessions of 1,900 partitions that do not exist: some are remembered, the others are not."""
    with started(tmp_path, headrace_fetch_session_bytes=30 * MB) as broker:
        neighbour_is_served(broker)
        flood = fetch_request("nowhere")
        flood.session_epoch = 0
        flood.topics[0].partitions = [FetchPartition(partition=number) for number in range(1_900)]
        body = flood.to_bytes(FETCH_BY_NAME)
        sessions = []
        with Wire(broker.port, timeout=120) as wire:
            for _ in range(130):
                number = wire.send_body(1, FETCH_BY_NAME, body)
                answer = wire.receive_body(1, FETCH_BY_NAME, number)
                sessions.append(int.from_bytes(answer[6:10]))  # behind the throttle time and the error
            assert sessions[0] != 0
            assert sessions.count(0) > 65
            # A consumer that follows little gets its session: the largest one goes for it.
            small = fetch_request("nowhere")
            small.session_epoch = 0
            assert wire.ask(small, FETCH_BY_NAME, FetchResponse).session_id != 0
        neighbour_is_served(broker)


def test_fault_41_members_share_one_budget(tmp_path: Path) -> None:
    """JoinGroups with client ids of 30 kB: those beyond the budget are told to come again."""
    with started(tmp_path, headrace_group_state_bytes=20 * MB) as broker:
        find_coordinator(broker)
        before = broker.resident_bytes()
        codes = Counter[int]()
        with Wire(broker.port, timeout=60) as wire:
            for number in range(2000):
                body = joining(f"group-{number % 50}").to_bytes(6)
                wire.socket.sendall(request_frame(11, 6, number, body, client_id="c" * 30_000))
                answer = JoinGroupResponse.from_bytes(wire.receive_frame()[5:], 6)
                codes[answer.error_code] += 1
        assert set(codes) == {ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.COORDINATOR_NOT_AVAILABLE}
        assert 200 <= codes[ErrorCode.MEMBER_ID_REQUIRED] <= 800
        assert broker.resident_bytes() - before <= 80 * MB


def test_fault_41_transactional_ids_share_one_budget(tmp_path: Path) -> None:
    with started(tmp_path, headrace_transaction_state_bytes=100_000) as broker:
        find_coordinator(broker, key_type=1)
        codes = []
        with Wire(broker.port, timeout=60) as wire:
            for number in [*range(100), 0]:
                request = InitProducerIdRequest(
                    transactional_id=f"{number:03}" + "y" * 1000, transaction_timeout_ms=60_000
                )
                codes.append(wire.ask(request, 4, InitProducerIdResponse).error_code)
                while codes[-1] in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
                    time.sleep(0.05)
                    codes[-1] = wire.ask(request, 4, InitProducerIdResponse).error_code
        assert ErrorCode.COORDINATOR_NOT_AVAILABLE in codes
        assert codes[-1] == 0, "an id that is known needs no room"


def used(address: str, kind: str) -> int:
    with urlopen(f"http://{address}/metrics", timeout=30) as page:
        lines = page.read().decode().splitlines()
    name = f'headrace_peer_memory_bytes{{kind="{kind}"}} '
    return int(float(next(line for line in lines if line.startswith(name)).removeprefix(name)))


def test_fault_41_producers_share_one_budget(tmp_path: Path) -> None:
    """5,000 producers write one batch each: those beyond the budget are told to come again."""
    metrics = f"127.0.0.1:{own_port()}"
    properties = {"headrace_producer_state_bytes": MB, "headrace_metrics_listener": metrics}
    with started(tmp_path, **properties) as broker:
        ConfluentClient(broker.bootstrap).create_topic("flooded")
        codes = Counter[int]()
        with Wire(broker.port, timeout=60) as wire:

            def produce(producer_id: int, sequence: int = 0) -> int:
                batch = encode_batch(
                    [NewRecord(b"x")], producer_id=producer_id, producer_epoch=0, base_sequence=sequence
                )
                data = PartitionProduceData(index=0, records=bytes(batch))
                topic = TopicProduceData(name="flooded", partition_data=[data])
                request = ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[topic])
                (told,) = wire.ask(request, 9, ProduceResponse).responses[0].partition_responses
                return int(told.error_code)

            for number in range(5000):
                codes[produce(1000 + number)] += 1
            assert set(codes) == {0, ErrorCode.KAFKA_STORAGE_ERROR}
            assert 500 <= codes[0] <= 1000
            assert produce(1000, 1) == 0, "whoever is known goes on"
        assert used(metrics, "producers") <= MB
        neighbour_is_served(broker)


def test_fault_41_committed_offsets_share_one_budget(tmp_path: Path) -> None:
    """Commits of 4,000 groups that have no members, with as much metadata as is allowed."""
    metrics = f"127.0.0.1:{own_port()}"
    properties = {"headrace_committed_offset_bytes": 2 * MB, "headrace_metrics_listener": metrics}
    with started(tmp_path, **properties) as broker:
        ConfluentClient(broker.bootstrap).create_topic("flooded")
        find_coordinator(broker)
        codes = Counter[int]()
        with Wire(broker.port, timeout=60) as wire:

            def commit(group: str, offset: int) -> int:
                row = OffsetCommitRequestPartition(
                    partition_index=0, committed_offset=offset, committed_metadata="m" * 4000
                )
                topic = OffsetCommitRequestTopic(name="flooded", partitions=[row])
                request = OffsetCommitRequest(group_id=group, topics=[topic])
                while True:
                    (told,) = wire.ask(request, 8, OffsetCommitResponse).topics[0].partitions
                    if told.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                        return int(told.error_code)
                    time.sleep(0.05)

            for number in range(4000):
                codes[commit(f"group-{number}", 0)] += 1
            assert set(codes) == {0, ErrorCode.COORDINATOR_NOT_AVAILABLE}
            assert 200 <= codes[0] <= 600
            assert commit("group-0", 1) == 0, "what is there moves on"
        assert used(metrics, "committed offsets") <= 2 * MB + 10_000
        neighbour_is_served(broker)


def test_fault_41_cached_answers_share_one_budget(tmp_path: Path) -> None:
    """300 questions whose answers are 2 kB each: those that were asked for last are kept."""
    metrics = f"127.0.0.1:{own_port()}"
    with started(tmp_path, headrace_answer_cache_bytes=100_000, headrace_metrics_listener=metrics) as broker:
        client = ConfluentClient(broker.bootstrap)
        client.create_topic("wide", partitions=50)
        with Wire(broker.port, timeout=60) as wire:
            for number in range(300):
                asked = [MetadataRequestTopic(name=name) for name in ("wide", f"missing-{number}")]
                wire.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), 9, MetadataResponse)
        assert 50_000 <= used(metrics, "cached answers") <= 100_000


def test_fault_41_answers_that_nobody_reads_share_one_budget(tmp_path: Path) -> None:
    """Sixty peers ask for all metadata, again and again, and read nothing."""
    with started(tmp_path, headrace_unsent_answer_bytes=MB) as broker:
        client = ConfluentClient(broker.bootstrap)
        for number in range(10):
            client.create_topic(f"{number}" + "t" * 200, partitions=100)
        neighbour_is_served(broker)
        before = broker.resident_bytes()
        questions = request_frame(3, 1, 1, b"\xff\xff\xff\xff") * 2000
        with connections(broker, 60) as held:
            for one in held:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.setblocking(False)
                with suppress(BlockingIOError):
                    one.send(questions)
            wait_until(lambda: "does not read its answers" in broker.tail(), "a connection that is closed")
            neighbour_is_served(broker)
            assert peak_bytes(broker) <= before + 40 * MB


def test_fault_41_refused_frames_write_few_lines(tmp_path: Path) -> None:
    with started(tmp_path) as broker:
        for number in range(1000):
            with connections(broker, 1) as (one,), suppress(ConnectionResetError):
                one.sendall(announced(-5) if number % 2 else request_frame(3, 9, 1, b"\xff" * 50))
                assert one.recv(10) == b""
        broker.stop()
        lines = broker.output.read_text().splitlines()
    assert len([line for line in lines if "connection closed" in line or "request refused" in line]) <= 15
    told = [json.loads(line) for line in lines if "similar events suppressed" in line]
    assert sum(line["suppressed"] for line in told) >= 900
