"""Metadata of 100,000 partitions asked for by 20 clients: what a neighbour's small produce takes meanwhile.

    python -m tests.hostile.metadata_storm [--seconds 30]

The broker is a process of its own. Its image is made up: the partitions are another broker's, so that none
has to be opened. Each second the brokers seem to change, as they do when one fails: all that was encoded is
encoded anew.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from multiprocessing.connection import Connection
from typing import Final
from uuid import UUID

from headrace.protocol.messages import create_topics_request as create
from headrace.protocol.messages import metadata_request as metadata
from headrace.protocol.messages import produce_request as produce
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.records import NewRecord, encode_batch
from headrace.protocol.stored.partition_record import PartitionRecord
from headrace.protocol.stored.topic_record import TopicRecord
from headrace.testing.cluster import Cluster
from tests.hostile.broker_process import SPAWNED, running
from tests.wire import Wire

CLIENTS: Final = 20
TOPICS: Final = 1_000
PARTITIONS_EACH: Final = 100
ELSEWHERE: Final = 2
NEIGHBOUR: Final = "neighbour"
_PAUSE_SECONDS: Final = 0.005
_CHANGE_SECONDS: Final = 1.0


def serve(pipe: Connection) -> None:
    from headrace.controller.delta import MetadataDelta

    with Cluster() as cluster:
        broker = cluster.broker

        def fill(number: int) -> None:
            topic_id = UUID(int=number + 1_000)
            records = [TopicRecord(name=f"topic-{number}", topic_id=topic_id)]
            rows = [
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=[ELSEWHERE],
                    isr=[ELSEWHERE],
                    leader=ELSEWHERE,
                )
                for index in range(PARTITIONS_EACH)
            ]
            broker.metadata.store.machine.replay([*records, *rows], MetadataDelta())

        for number in range(TOPICS):
            cluster.call(lambda number=number: fill(number))  # type: ignore[misc] # bound as it is now
        pipe.send(cluster.bootstrap)
        while not pipe.poll(_CHANGE_SECONDS):
            cluster.call(broker.context.answers.forget)
        pipe.recv()


def ask(port: int, until: float, counted: list[int]) -> None:
    body = metadata.MetadataRequest(topics=None).to_bytes(12)
    with Wire(port, timeout=60) as wire:
        while time.monotonic() < until:
            wire.send_body(metadata.MetadataRequest.API_KEY, 12, body)
            counted.append(len(wire.receive_frame()))


def ask_all(port: int, seconds: float, pipe: Connection) -> None:
    """In a process of its own: twenty threads, which wait for the broker most of the time."""
    counted: list[int] = []
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=ask, args=(port, until, counted)) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pipe.send((len(counted), counted[-1]))


def latencies(port: int, seconds: float) -> tuple[float, float]:
    """The median and the 99th percentile of small produces, in milliseconds."""
    data = produce.PartitionProduceData(index=0, records=bytes(encode_batch([NewRecord(b"v", timestamp=1)])))
    topics = [produce.TopicProduceData(name=NEIGHBOUR, partition_data=[data])]
    request = produce.ProduceRequest(acks=1, timeout_ms=9000, topic_data=topics)
    found = []
    until = time.monotonic() + seconds
    with Wire(port, timeout=60) as wire:
        while time.monotonic() < until:
            began = time.perf_counter()
            answer = wire.ask(request, 9, ProduceResponse)
            found.append((time.perf_counter() - began) * 1000)
            assert answer.responses[0].partition_responses[0].error_code == 0
            time.sleep(_PAUSE_SECONDS)
    found.sort()
    return found[len(found) // 2], found[len(found) * 99 // 100]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=30)
    given = options.parse_args()
    with running(serve) as (port, _):
        with Wire(port, timeout=60) as wire:
            topic = create.CreatableTopic(name=NEIGHBOUR, num_partitions=1, replication_factor=1)
            wire.ask(create.CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7, CreateTopicsResponse)
        alone = latencies(port, given.seconds)
        here, there = SPAWNED.Pipe()
        clients = SPAWNED.Process(target=ask_all, args=(port, given.seconds, there))
        clients.start()
        beside = latencies(port, given.seconds)
        count, size = here.recv()
        clients.join()
    total = TOPICS * PARTITIONS_EACH
    print(f"{count} answers of {size:,} bytes about {total:,} partitions; load {os.getloadavg()[0]:.1f}")
    print(f"neighbour's produce alone: p50 {alone[0]:.2f} ms, p99 {alone[1]:.2f} ms")
    print(f"beside {CLIENTS} clients: p50 {beside[0]:.2f} ms, p99 {beside[1]:.2f} ms")
    print(f"p99 is {beside[1] / alone[1]:.1f} times what it is alone; at most 3 is wanted")


if __name__ == "__main__":
    main()
