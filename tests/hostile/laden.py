"""A broker that holds much: thousands of partitions, groups and transactions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from headrace.protocol.messages import create_topics_request as create
from headrace.protocol.messages import find_coordinator_request as find
from headrace.protocol.messages import init_producer_id_request as init
from headrace.protocol.messages import metadata_request as metadata
from headrace.protocol.messages import offset_commit_request as commit
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from headrace.testing.cluster import Cluster
from tests.wire import Wire

WIDE: Final = "wide"
PARTITIONS: Final = 5_000
SMALL: Final = [f"small-{number}" for number in range(300)]
GROUPS: Final = 5_000
TRANSACTIONS: Final = 2_000
GROUP: Final = "g"
TRANSACTION: Final = "t"
INDEXES: Final = list(range(PARTITIONS))


class Laden(NamedTuple):
    """What the requests have to know of it."""

    cluster: Cluster
    topic_id: Any
    producer_id: int
    producer_epoch: int

    def wire(self, timeout: float = 120) -> Wire:
        return Wire(int(self.cluster.bootstrap.rpartition(":")[2]), timeout=timeout)


@contextmanager
def laden() -> Iterator[Laden]:
    with Cluster() as cluster, Wire(int(cluster.bootstrap.rpartition(":")[2]), timeout=120) as wire:
        yield _load(cluster, wire)


def _load(cluster: Cluster, wire: Wire) -> Laden:
    topics = [create.CreatableTopic(name=WIDE, num_partitions=PARTITIONS, replication_factor=1)]
    topics += [create.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in SMALL]
    made = wire.ask(create.CreateTopicsRequest(topics=topics, timeout_ms=100_000), 7, CreateTopicsResponse)
    assert {topic.error_code for topic in made.topics} == {0}
    request = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=WIDE)])
    topic_id = wire.ask(request, 12, MetadataResponse).topics[0].topic_id
    for kind in (0, 1):  # makes the internal topics
        wire.ask(
            find.FindCoordinatorRequest(key_type=kind, coordinator_keys=[GROUP]), 4, FindCoordinatorResponse
        )
    _until(
        lambda: (
            not wire.ask(commit_of(GROUP, [0]), 9, OffsetCommitResponse).topics[0].partitions[0].error_code
        )
    )
    wire.ask(commit_of(GROUP, INDEXES), 9, OffsetCommitResponse)
    for number in range(GROUPS):
        wire.send_body(commit.OffsetCommitRequest.API_KEY, 9, commit_of(f"group-{number}", [0]).to_bytes(9))
        wire.receive_frame()
    found: list[Any] = []

    def begun() -> bool:
        answer = wire.ask(_begin(TRANSACTION), 4, InitProducerIdResponse)
        found[:] = [answer.producer_id, answer.producer_epoch]
        return not answer.error_code

    _until(begun)
    for number in range(TRANSACTIONS):
        wire.ask(_begin(f"transaction-{number}"), 4, InitProducerIdResponse)
    return Laden(cluster, topic_id, *found)


def _until(is_done: Callable[[], bool]) -> None:
    """While a coordinator is being loaded."""
    while not is_done():
        time.sleep(0.05)


def commit_of(group: str, indexes: list[int]) -> commit.OffsetCommitRequest:
    rows = [
        commit.OffsetCommitRequestPartition(partition_index=index, committed_offset=0, committed_metadata="")
        for index in indexes
    ]
    return commit.OffsetCommitRequest(
        group_id=group, topics=[commit.OffsetCommitRequestTopic(name=WIDE, partitions=rows)]
    )


def _begin(name: str) -> init.InitProducerIdRequest:
    return init.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
