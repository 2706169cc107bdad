"""The ten dearest requests in a loop beside a producer, on real processes.

    python -m tests.hostile.five_minutes [--seconds 300]

A cluster of three brokers. One client sends the ten dearest requests to one of them, again and again. Prints
whether a broker was fenced, what a producer writes alone and meanwhile, how long a neighbour's small produce
takes, and the memory of the brokers.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any, Final, NamedTuple

from headrace.protocol.messages import create_topics_request as create
from headrace.protocol.messages import describe_topic_partitions_request as topic_partitions
from headrace.protocol.messages import find_coordinator_request as find
from headrace.protocol.messages import metadata_request as metadata
from headrace.protocol.messages import produce_request as produce
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.records import NewRecord, encode_batch
from headrace.testing.cluster import Cluster
from tests.hostile import dear_requests, laden
from tests.hostile.dear_requests import DEAR, Dear
from tests.wire import Wire

BROKERS: Final = 3
NEIGHBOUR: Final = "neighbour"
PAYLOAD: Final = "payload"
NAMES: Final = ("Produce to everything", "Fetch of everything, with records", "OffsetCommit of everything")
NAMES_MORE: Final = (
    "ListOffsets of everything, by time",
    "ConsumerGroupHeartbeat, all that a pattern matches",
    "JoinGroup with many protocols",
    "DescribeLogDirs of everything",
    "DescribeConfigs of everything",
)
_PAUSE_SECONDS: Final = 0.02


def _unknown_metadata(_: Any) -> metadata.MetadataRequest:
    topics = [metadata.MetadataRequestTopic(name=f"n{each}") for each in range(100_000)]
    return metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def _unknown_descriptions(_: Any) -> topic_partitions.DescribeTopicPartitionsRequest:
    topics = [topic_partitions.TopicRequest(name=f"n{each}") for each in range(50_000)]
    return topic_partitions.DescribeTopicPartitionsRequest(topics=topics)


TEN: Final = (
    *(each for each in DEAR if each.name in (*NAMES, *NAMES_MORE)),
    Dear("Metadata of unknown names", 12, _unknown_metadata),
    Dear("DescribeTopicPartitions of unknown names", 0, _unknown_descriptions),
)


def attack(port: int, topic_id: Any, until: float, counted: Any) -> None:
    """In a process of its own: one connection, one request after the other."""
    of: Any = laden.Laden(None, topic_id, 0, 0)  # type: ignore[arg-type] # it is only asked for the topic
    bodies = [(dear, dear.make(of)) for dear in TEN]
    frames = [(request.API_KEY, dear.version, request.to_bytes(dear.version)) for dear, request in bodies]
    for key, version, body in cycle(frames):
        if time.monotonic() > until:
            return
        try:
            with Wire(port, timeout=60) as wire:
                wire.send_body(key, version, body)
                wire.receive_frame()
        except (EOFError, OSError):
            time.sleep(0.1)  # refused
        counted.value += 1


class Measured(NamedTuple):
    batches_per_second: float
    p50_ms: float
    p99_ms: float
    fewest_brokers: int


def measure(port: int, seconds: float) -> Measured:
    latencies: list[float] = []
    written, fewest = [0], [BROKERS]
    until = time.monotonic() + seconds

    def write() -> None:
        body = _produce(PAYLOAD, [NewRecord(bytes(1000), timestamp=1)] * 100)
        _repeat(port, until, lambda wire: written.__setitem__(0, written[0] + _ask(wire, body)))

    def ask_small() -> None:
        body = _produce(NEIGHBOUR, [NewRecord(b"v", timestamp=1)])

        def once(wire: Wire) -> None:
            began = time.perf_counter()
            _ask(wire, body)
            latencies.append(time.perf_counter() - began)
            time.sleep(_PAUSE_SECONDS)

        _repeat(port, until, once)

    def look() -> None:
        def once(wire: Wire) -> None:
            answer = wire.ask(metadata.MetadataRequest(topics=[]), 12, MetadataResponse)
            fewest[0] = min(fewest[0], len(answer.brokers))
            time.sleep(0.5)

        _repeat(port, until, once)

    threads = [threading.Thread(target=work) for work in (write, ask_small, look)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    latencies.sort()
    count = len(latencies)
    return Measured(
        written[0] / seconds, latencies[count // 2] * 1000, latencies[count * 99 // 100] * 1000, fewest[0]
    )


def _repeat(port: int, until: float, once: Callable[[Wire], None]) -> None:
    with Wire(port, timeout=60) as wire:
        while time.monotonic() < until:
            once(wire)


def _produce(topic: str, records: list[NewRecord]) -> produce.ProduceRequest:
    data = produce.PartitionProduceData(index=0, records=bytes(encode_batch(records)))
    topics = [produce.TopicProduceData(name=topic, partition_data=[data])]
    return produce.ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics)


def _ask(wire: Wire, request: produce.ProduceRequest) -> int:
    answer = wire.ask(request, 9, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return 1


def _make_topics(port: int, broker_id: int) -> Any:
    """All of them on the broker that is attacked."""

    def on_it(name: str, partitions: int) -> create.CreatableTopic:
        rows = [
            create.CreatableReplicaAssignment(partition_index=index, broker_ids=[broker_id])
            for index in range(partitions)
        ]
        return create.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=rows)

    sizes = {laden.WIDE: laden.PARTITIONS, NEIGHBOUR: 1, PAYLOAD: 1, **dict.fromkeys(laden.SMALL, 1)}
    with Wire(port, timeout=120) as wire:
        topics = [on_it(name, size) for name, size in sizes.items()]
        made = wire.ask(
            create.CreateTopicsRequest(topics=topics, timeout_ms=100_000), 7, CreateTopicsResponse
        )
        assert {topic.error_code for topic in made.topics} == {0}, made
        wire.ask(
            find.FindCoordinatorRequest(key_type=0, coordinator_keys=[laden.GROUP]),
            4,
            FindCoordinatorResponse,
        )
        request = produce.ProduceRequest(acks=1, timeout_ms=9000, topic_data=[])
        for name, index in ((PAYLOAD, 0), (NEIGHBOUR, 0), (laden.WIDE, laden.PARTITIONS - 1)):
            data = produce.PartitionProduceData(index=index, records=dear_requests.BATCH)
            request.topic_data = [produce.TopicProduceData(name=name, partition_data=[data])]
            while wire.ask(request, 9, ProduceResponse).responses[0].partition_responses[0].error_code:
                time.sleep(0.2)  # it is being opened
        return next(topic.topic_id for topic in made.topics if topic.name == laden.WIDE)


def _peak_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=300)
    options.add_argument("--alone", type=float, default=60, help="seconds without the attack, before it")
    given = options.parse_args()
    with Cluster(brokers=BROKERS) as cluster:
        pids = cluster.processes.pids
        port = int(cluster.bootstrap.split(",")[0].rpartition(":")[2])
        topic_id = _make_topics(port, min(pids))
        alone = measure(port, given.alone)
        counted = multiprocessing.get_context("spawn").Value("i", 0)
        until = time.monotonic() + given.seconds
        attacker = multiprocessing.get_context("spawn").Process(
            target=attack, args=(port, topic_id, until, counted)
        )
        attacker.start()
        attacked = measure(port, given.seconds)
        attacker.join()
        memory = {broker_id: _peak_mb(pid) for broker_id, pid in pids.items()}
    share = attacked.batches_per_second / alone.batches_per_second
    print(
        f"{counted.value} of the ten dearest requests in {given.seconds:.0f} s; load {os.getloadavg()[0]:.1f}"
    )
    fenced = "nobody" if attacked.fewest_brokers == BROKERS else f"down to {attacked.fewest_brokers} brokers"
    print(f"fenced: {fenced}")
    print(
        f"producer, batches of 100 KB in a second: {alone.batches_per_second:.0f} alone,"
        f" {attacked.batches_per_second:.0f} under attack ({share:.0%})"
    )
    for name, found in (("alone", alone), ("under attack", attacked)):
        print(f"neighbour {name}: p50 {found.p50_ms:.1f} ms, p99 {found.p99_ms:.1f} ms")
    print("peak memory: " + ", ".join(f"broker {each} {size:.0f} MB" for each, size in memory.items()))


if __name__ == "__main__":
    main()
