"""A broker that may open fewer files than one fetch asks for."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from headrace.protocol.messages import create_topics_request as create
from headrace.protocol.messages import describe_log_dirs_request as describe
from headrace.protocol.messages import fetch_request as fetch
from headrace.protocol.messages import produce_request as produce
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse
from headrace.protocol.messages.fetch_response import FetchResponse
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.records import NewRecord, encode_batch
from tests.broker_process import BrokerProcess, HeadraceProcess, Place
from tests.wire import Wire

PARTITIONS = 900
DESCRIPTORS = 760
"""Of a process of its own: what this one has open depends on the tests before. Logs keep up to half of it."""


def broker(directory: Path) -> BrokerProcess:
    # Both limits: a broker raises the soft one to the hard one.
    limited = Place(prefix=("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}"))
    return HeadraceProcess(directory, place=limited)


def connect(running: BrokerProcess) -> Wire:
    return Wire(running.port, timeout=60)


def make(wire: Wire) -> UUID:
    topic = create.CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=1)
    made = wire.ask(create.CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7, CreateTopicsResponse)
    found: UUID = made.topics[0].topic_id
    batch = bytes(encode_batch([NewRecord(bytes(20_000), timestamp=1)]))  # too large to be copied
    for begin in range(0, PARTITIONS, 300):
        rows = [produce.PartitionProduceData(index=begin + each, records=batch) for each in range(300)]
        topics = [produce.TopicProduceData(name="t", partition_data=rows)]
        request = produce.ProduceRequest(acks=1, timeout_ms=9000, topic_data=topics)
        answer = wire.ask(request, 9, ProduceResponse)
        assert {row.error_code for row in answer.responses[0].partition_responses} == {0}
    return found


def wanted(topic_id: UUID, offsets: dict[int, int]) -> fetch.FetchRequest:
    rows = [
        fetch.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index, offset in offsets.items()
    ]
    topics = [fetch.FetchTopic(topic_id=topic_id, partitions=rows)]
    return fetch.FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 30, session_epoch=-1, topics=topics)


def test_a_fetch_of_more_files_than_may_be_open(tmp_path: Path) -> None:
    with broker(tmp_path) as running, connect(running) as wire:
        topic_id = make(wire)
    with broker(tmp_path) as running, connect(running) as wire:
        offsets = dict.fromkeys(range(PARTITIONS), 0)
        for _ in range(20):
            rows = wire.ask(wanted(topic_id, offsets), 17, FetchResponse).responses[0].partitions
            assert {row.error_code for row in rows} == {0}
            offsets.update((row.partition_index, 1) for row in rows if row.records)
            if set(offsets.values()) == {1}:
                break
        assert set(offsets.values()) == {1}, "all of it was given"
        directories = wire.ask(
            describe.DescribeLogDirsRequest(topics=None), 4, DescribeLogDirsResponse
        ).results
        assert [each.error_code for each in directories] == [0], "it is not the directory's fault"
