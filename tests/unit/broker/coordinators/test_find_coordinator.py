"""A whole broker: the internal topics appear with the first question, and their state outlives a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.handlers import find_coordinator
from headrace.broker.requests.api import Call
from headrace.broker.requests.apis import BY_KEY
from headrace.broker.requests.dispatcher import ToItself
from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.coordinators.partitioning import partition_for
from headrace.core.errors import CoordinatorLoading
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from headrace.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from headrace.protocol.stored.offset_commit_key import OffsetCommitKey
from headrace.protocol.stored.offset_commit_value import OffsetCommitValue
from headrace.testing.cluster import Cluster

FEW = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "3"}
WHAT = OffsetFetchRequestGroup(
    group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
)
KEY = OffsetCommitKey(group="g", topic="t", partition=0)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(FEW, directory=tmp_path) as running:
        yield running


def call_of(cluster: Cluster, version: int) -> Call:
    itself: Any = ToItself(cluster.broker.runtime.config.bound_listeners[0].name)
    return Call(version, "test", itself)


def find(cluster: Cluster, version: int, **fields: Any) -> FindCoordinatorResponse:
    async def ask() -> FindCoordinatorResponse:
        call = call_of(cluster, version)
        answer = find_coordinator.handle(cluster.broker.context, FindCoordinatorRequest(**fields), call)
        return answer if isinstance(answer, FindCoordinatorResponse) else await answer

    return cluster.run(ask())


def test_the_first_question_makes_the_topic_and_finds_its_leader(cluster: Cluster) -> None:
    port = int(cluster.bootstrap.rpartition(":")[2])
    assert cluster.broker.metadata.image.topic("__consumer_offsets") is None
    found = find(cluster, 0, key="g")
    assert (found.error_code, found.node_id, found.port) == (ErrorCode.NONE, 1, port)
    topic = cluster.broker.metadata.image.topic("__consumer_offsets")
    assert topic is not None
    assert [topic.replicas(index) for index in range(len(topic))] == [(1,)] * 4
    assert cluster.broker.metadata.image.topic_configs("__consumer_offsets") == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    assert cluster.broker.metadata.image.topic("__transaction_state") is None


def test_transactional_ids_have_a_topic_of_their_own(cluster: Cluster) -> None:
    found = find(cluster, 6, key_type=1, coordinator_keys=["a", "b"])
    assert [(each.key, each.node_id, each.error_code) for each in found.coordinators] == [
        ("a", 1, 0),
        ("b", 1, 0),
    ]
    assert cluster.broker.metadata.image.topic_configs("__transaction_state") == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }
    assert len(cluster.broker.metadata.image.topic("__transaction_state") or ()) == 3


@pytest.mark.parametrize("key_type", [2, 3, -1])
def test_other_keys_have_no_coordinator(cluster: Cluster, key_type: int) -> None:
    found = find(cluster, 6, key_type=key_type, coordinator_keys=["a"])
    assert [(each.node_id, each.error_code) for each in found.coordinators] == [
        (-1, ErrorCode.INVALID_REQUEST)
    ]
    assert find(cluster, 1, key_type=key_type, key="a").error_code == ErrorCode.INVALID_REQUEST


def test_a_partition_without_a_leader_has_no_coordinator(cluster: Cluster) -> None:
    find(cluster, 0, key="g")
    topic = cluster.broker.metadata.image.topic("__consumer_offsets")
    assert topic is not None
    topic.leaders[partition_for("g", 4)] = -1
    assert find(cluster, 0, key="g").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    found = find(cluster, 4, coordinator_keys=["g", "h"])
    expected = [
        ErrorCode.COORDINATOR_NOT_AVAILABLE if partition_for(key, 4) == partition_for("g", 4) else 0
        for key in ("g", "h")
    ]
    assert [each.error_code for each in found.coordinators] == expected
    assert len(set(expected)) == 2


def test_metadata_makes_an_internal_topic_as_it_should_be(cluster: Cluster) -> None:
    async def ask() -> None:
        request = MetadataRequest(topics=[MetadataRequestTopic(name="__consumer_offsets")])
        handle = BY_KEY[MetadataRequest.API_KEY].handle
        assert handle is not None
        await handle(cluster.broker.context, request, call_of(cluster, 9))  # type: ignore[misc]  # it creates first

    cluster.run(ask())
    image = cluster.broker.metadata.image
    assert len(image.topic("__consumer_offsets") or ()) == 4
    assert image.topic_configs("__consumer_offsets")["cleanup.policy"] == "compact"


def test_what_was_committed_is_there_after_a_restart(cluster: Cluster) -> None:
    find(cluster, 0, key="g")

    async def write() -> object:
        value = OffsetCommitValue(offset=7, metadata="", commit_timestamp=1)
        record = CoordinatorRecord(KEY, value, 3)
        return await cluster.broker.coordinators.groups.ask("g", lambda *_: Decision([record], "written"))

    async def read() -> object:
        while True:
            try:
                return await cluster.broker.coordinators.groups.ask(
                    "g", lambda shard, _, _now: shard.offsets.fetch(WHAT, require_stable=False)
                )
            except CoordinatorLoading:
                await asyncio.sleep(0.001)

    assert cluster.run(write()) == "written"
    before: Any = cluster.run(read())
    assert before.topics[0].partitions[0].committed_offset == 7
    cluster.restart()
    assert cluster.run(read()) == before


def test_a_stop_does_not_wait_for_requests_that_are_parked(cluster: Cluster) -> None:
    find(cluster, 0, key="g")

    async def wait() -> object:
        return cluster.broker.coordinators.groups.ask("g", lambda *_: Decision())

    parked: Any = cluster.run(wait())
    cluster.restart()
    assert parked.error is not None
