"""What a link costs beside a follower, and how late a record is on the other side.

    python -m bench.link --megabytes 1024 --runs 5

Cost: the same records are copied by a follower that is added to a topic, and by a link to the same topic. CPU
seconds of the process that copies, for each gigabyte, from its request on until it has all. Runs alternate.
Latency: librdkafka sends at a steady rate to the source and reads from the copy; one clock for both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from tests.broker_process import HeadraceProcess
from tests.cluster_process import HeadraceCluster
from tests.integration.real_client import create
from tests.unit.cli.serving import runner

from bench.process_cost import cpu_seconds

PARTITIONS: Final = 3
VALUE_BYTES: Final = 1000
SECONDS: Final = 600.0
SETTLE_SECONDS: Final = 3.0
LOOK_SECONDS: Final = 0.3
"""Between two questions whether it is done, which cost the one that is asked."""


def fill(bootstrap: str, topic: str, megabytes: int, partitions: int = PARTITIONS) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 20,
            "batch.size": 262_144,
            "queue.buffering.max.messages": 50_000,
        }
    )
    value = bytes(range(250)) * 4
    for i in range(megabytes * 1_000_000 // VALUE_BYTES):
        while True:
            try:
                producer.produce(topic, value, partition=i % partitions)
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    assert producer.flush(SECONDS) == 0


def cost(pid: int, copy: Callable[[], None], gigabytes: float) -> float:
    """CPU seconds for each gigabyte, without what the process takes while it is idle."""
    began, idle = time.monotonic(), cpu_seconds(pid)
    time.sleep(SETTLE_SECONDS)
    idle_rate = (cpu_seconds(pid) - idle) / (time.monotonic() - began)
    began, before = time.monotonic(), cpu_seconds(pid)
    copy()
    took = time.monotonic() - began
    return (cpu_seconds(pid) - before - idle_rate * took) / gigabytes


def costs(directory: Path, megabytes: int, runs: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"follower": [], "link": []}
    gigabytes = megabytes / 1000
    with (
        HeadraceCluster(directory / "cluster", 2) as cluster,
        HeadraceProcess(directory / "target") as target,
    ):
        there, here = runner(cluster.bootstrap), runner(target.bootstrap)
        for number in range(runs):
            topic = f"cost-{number}"
            cluster.create_topic(topic, [[1]] * PARTITIONS)
            fill(cluster.bootstrap, topic, megabytes)

            def follow(topic: str = topic) -> None:
                moves = [f"{partition}=1,2" for partition in range(PARTITIONS)]
                there("topic", "reassign", topic, *[word for each in moves for word in ("--replicas", each)])
                while len(cluster.partition(topic, PARTITIONS - 1).isr) < 2:
                    time.sleep(LOOK_SECONDS)

            def link(topic: str = topic) -> None:
                here("link", "create", topic, "--source", cluster.bootstrap)
                while _lag(here, topic) != 0:
                    time.sleep(LOOK_SECONDS)

            ways = [("follower", cluster.brokers[2].pid, follow), ("link", target.pid, link)]
            for name, pid, copy in ways if number % 2 else reversed(ways):
                found[name].append(cost(pid, copy, gigabytes))
                print(f"run {number + 1}: {name} {found[name][-1]:.2f} s of CPU for each GB", flush=True)
            there("topic", "delete", topic)
            here("link", "delete", topic, "--yes")
    return found


def _lag(run: Callable[..., object], topic: str) -> object:
    return json.loads(run("link", "describe", topic, "--json").stdout)["lag"]  # type: ignore[attr-defined]  # click's Result


def latencies(directory: Path, rate: int, seconds: float) -> list[float]:
    """Milliseconds from `produce` at the source to the consumer of the copy."""
    times: list[float] = []
    with HeadraceProcess(directory / "a") as source, HeadraceProcess(directory / "b") as target:
        create(source.bootstrap, "late", 1)
        runner(target.bootstrap)("link", "create", "late", "--source", source.bootstrap)
        producer = Producer({"bootstrap.servers": source.bootstrap, "linger.ms": 0, "acks": "all"})
        consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": "late"})
        consumer.assign([TopicPartition("late", 0, 0)])
        total, sent, began = int(rate * seconds), 0, time.monotonic()
        while len(times) < total and time.monotonic() < began + seconds + 30:
            while sent < total and time.monotonic() >= began + sent / rate:
                producer.produce("late", struct.pack(">d", time.monotonic()))
                sent += 1
            producer.poll(0)
            message: Message | None = consumer.poll(0.0005)
            if message is not None and not message.error():
                value = message.value()
                assert value is not None
                times.append((time.monotonic() - struct.unpack(">d", value)[0]) * 1000)
        consumer.close()
        producer.flush(10)
    assert len(times) == total, f"{len(times)} of {total} arrived"
    return times[rate:]  # the first second finds leaders and opens connections


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        found = costs(Path(name), options.megabytes, options.runs) if options.runs else {}
        times = sorted(latencies(Path(name), options.rate, options.seconds))
    for way, values in found.items():
        spread = f"{min(values):.2f} to {max(values):.2f}"
        print(f"{way}: {statistics.median(values):.2f} s of CPU for each GB ({spread})")
    if found:
        ratio = statistics.median(found["link"]) / statistics.median(found["follower"])
        print(f"a link costs {ratio:.2f} of a follower")
    p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
    print(f"latency through the link: p50 {p50:.1f} ms, p99 {p99:.1f} ms, largest {times[-1]:.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
