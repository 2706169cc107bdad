"""The ten dearest requests in a loop beside a producer, on real processes.

    python -m tests.hostile.five_minutes [--seconds 300]

A cluster of three brokers. One client sends the ten dearest requests to one of them, again and again. It, the
producer and the neighbour are processes of their own. Prints whether a broker
was fenced, what a producer writes alone and meanwhile, how long a neighbour's small produce takes, and the
memory of the brokers.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from queue import Empty
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
#: The producer fills a disk in minutes otherwise, and is refused then.
_SOON_REMOVED: Final = {
    "log.retention.ms": "-1",
    "log.retention.bytes": str(1 << 30),
    "log.segment.bytes": str(1 << 28),
    "log.retention.check.interval.ms": "5000",
    "log.segment.delete.delay.ms": "100",
}


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


class Stage(NamedTuple):
    """What all processes of one measurement share. Each has an interpreter of its own, or whoever attacks
    would make those slow who measure."""

    port: int
    seconds: float
    start: Any
    """A barrier: they begin together, when all of them are ready."""

    def begin(self) -> float:
        """When it is over."""
        self.start.wait(120)
        return time.monotonic() + self.seconds


def attack(stage: Stage, topic_id: Any, counted: Any) -> None:
    """One connection, one request after the other."""
    of: Any = laden.Laden(None, topic_id, 0, 0)  # type: ignore[arg-type] # it is only asked for the topic
    bodies = [(dear, dear.make(of)) for dear in TEN]
    frames = [(request.API_KEY, dear.version, request.to_bytes(dear.version)) for dear, request in bodies]
    until = stage.begin()
    for key, version, body in cycle(frames):
        if time.monotonic() > until:
            return
        try:
            with Wire(stage.port, timeout=60) as wire:
                wire.send_body(key, version, body)
                wire.receive_frame()
        except (EOFError, OSError):
            time.sleep(0.1)  # refused
        counted.value += 1


def write(stage: Stage, found: Any) -> None:
    """As fast as it goes."""
    body = _produce(PAYLOAD, [NewRecord(bytes(1000), timestamp=1)] * 100)
    written = 0

    def once(wire: Wire) -> None:
        nonlocal written
        _ask(wire, body)
        written += 1

    _repeat(stage, once)
    found.put(written / stage.seconds)


def ask_small(stage: Stage, found: Any) -> None:
    """Now and then; how long it took each time, in milliseconds."""
    body = _produce(NEIGHBOUR, [NewRecord(b"v", timestamp=1)])
    latencies: list[float] = []

    def once(wire: Wire) -> None:
        began = time.perf_counter()
        _ask(wire, body)
        latencies.append((time.perf_counter() - began) * 1000)
        time.sleep(_PAUSE_SECONDS)

    _repeat(stage, once)
    found.put(sorted(latencies))


def look(stage: Stage, found: Any) -> None:
    """The fewest brokers that were alive."""
    fewest = BROKERS

    def once(wire: Wire) -> None:
        nonlocal fewest
        answer = wire.ask(metadata.MetadataRequest(topics=[]), 12, MetadataResponse)
        fewest = min(fewest, len(answer.brokers))
        time.sleep(0.5)

    _repeat(stage, once)
    found.put(fewest)


class Measured(NamedTuple):
    batches_per_second: float
    p50_ms: float
    p99_ms: float
    longest_ms: float
    fewest_brokers: int


def measure(port: int, seconds: float, *attackers: Callable[[Stage], Any]) -> Measured:
    """`attackers` make processes that begin together with those that measure."""
    context = multiprocessing.get_context("spawn")
    works = (write, ask_small, look)
    stage = Stage(port, seconds, context.Barrier(len(works) + len(attackers)))
    queues = [context.Queue() for _ in works]
    processes = [
        context.Process(target=work, args=(stage, queue)) for work, queue in zip(works, queues, strict=True)
    ]
    processes += [make(stage) for make in attackers]
    for process in processes:
        process.start()
    rate, latencies, fewest = map(_result, queues, processes)
    for process in processes:
        process.join()
    count = len(latencies)
    return Measured(rate, latencies[count // 2], latencies[count * 99 // 100], latencies[-1], fewest)


def _result(queue: Any, process: Any) -> Any:
    while True:
        try:
            return queue.get(timeout=1)
        except Empty:
            if process.exitcode is not None:
                raise SystemExit("a process that measures has ended early; above it says why") from None


def _repeat(stage: Stage, once: Callable[[Wire], None]) -> None:
    with Wire(stage.port, timeout=60) as wire:
        until = stage.begin()
        while time.monotonic() < until:
            once(wire)


def _produce(topic: str, records: list[NewRecord]) -> produce.ProduceRequest:
    data = produce.PartitionProduceData(index=0, records=bytes(encode_batch(records)))
    topics = [produce.TopicProduceData(name=topic, partition_data=[data])]
    return produce.ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics)


def _ask(wire: Wire, request: produce.ProduceRequest) -> None:
    (answer,) = wire.ask(request, 9, ProduceResponse).responses[0].partition_responses
    assert answer.error_code == 0, answer


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
    with Cluster(_SOON_REMOVED, brokers=BROKERS) as cluster:
        pids = cluster.processes.pids
        port = int(cluster.bootstrap.split(",")[0].rpartition(":")[2])
        topic_id = _make_topics(port, min(pids))
        alone = measure(port, given.alone)
        context = multiprocessing.get_context("spawn")
        counted = context.Value("i", 0)
        attacked = measure(
            port,
            given.seconds,
            lambda stage: context.Process(target=attack, args=(stage, topic_id, counted)),
        )
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
        print(
            f"neighbour {name}: p50 {found.p50_ms:.1f} ms, p99 {found.p99_ms:.1f} ms,"
            f" longest {found.longest_ms:.0f} ms"
        )
    print("peak memory: " + ", ".join(f"broker {each} {size:.0f} MB" for each, size in memory.items()))


if __name__ == "__main__":
    main()
