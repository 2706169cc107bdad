"""How long writes stop when a leader goes: Headrace beside Apache Kafka, on hosts of their own, in one run.

    python -m bench.failover --runs 30

A producer of librdkafka sends 1,000 records a second with acks=all to a topic of one partition, three
replicas and min.insync.replicas=2, and the leader's broker is killed, terminated or cut off. The time without
acknowledgements is the longest between two of them. Afterwards everything is read back: what was acknowledged
must be there, and nothing twice. Brokers have their default settings. Needs root, for the hosts.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.chaos.testbed import Equipment, Testbed

RATE: Final = 1000
BEFORE_SECONDS: Final = 2.0
AFTER_SECONDS: Final = 1.5
LIMIT_SECONDS: Final = 60.0
WAYS: Final = ("kill", "kill controller", "terminate", "cut")
#: A client that wants to know soon. The same for both.
CLIENT: Final[dict[str, str | int | float | bool]] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 1,
    "message.timeout.ms": 60_000,
    "topic.metadata.refresh.interval.ms": 250,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "socket.timeout.ms": 1000,
    "socket.connection.setup.timeout.ms": 1000,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "log_level": 0,
}


@dataclass
class Run:
    target: str
    way: str
    gap_ms: float
    sent: int
    acknowledged: int
    failed: int
    lost: int
    twice: int


@dataclass
class Sender:
    """Sends numbers at a steady rate, and remembers when each was acknowledged."""

    bootstrap: str
    topic: str
    sent: int = 0
    failed: int = 0
    acknowledged: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        settings = {**CLIENT, "bootstrap.servers": self.bootstrap, "error_cb": lambda _: None}
        self._producer = Producer(settings)
        self._began = time.monotonic()

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed += 1
        else:
            self.acknowledged[_number(message)] = time.monotonic()

    def run_until(self, moment: float) -> None:
        while (now := time.monotonic()) < moment:
            while self.sent < (now - self._began) * RATE:
                value = struct.pack(">q", self.sent) + b"x" * 92
                self._producer.produce(self.topic, value, partition=0, on_delivery=self._told)
                self.sent += 1
            self._producer.poll(0.001)

    def run_past(self, fault: float) -> None:
        """Until acknowledgements have come again for a while, of what was sent after the fault."""
        limit = fault + LIMIT_SECONDS
        behind = int((fault - self._began) * RATE) + 1
        while not any(number >= behind for number in reversed(self.acknowledged)):
            if time.monotonic() > limit:
                raise RuntimeError(f"no acknowledgement within {LIMIT_SECONDS:g} s after the fault")
            self.run_until(time.monotonic() + 0.05)
        self.run_until(time.monotonic() + AFTER_SECONDS)
        self._producer.flush(60)

    def longest_gap(self, since: float) -> float:
        times = sorted(moment for moment in self.acknowledged.values() if moment >= since)
        return max(after - before for before, after in pairwise(times))


def _number(message: Message) -> int:
    value = message.value()
    assert isinstance(value, bytes)
    return int(struct.unpack_from(">q", value)[0])


def read_back(bootstrap: str, topic: str) -> list[int]:
    consumer = Consumer({**_reader(), "bootstrap.servers": bootstrap})
    try:
        end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1]
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[int] = []
        deadline = time.monotonic() + 60
        position = 0
        while position < end and time.monotonic() < deadline:
            for message in consumer.consume(5000, 0.2):
                if message.error() is None:
                    found.append(_number(message))
                    position = (message.offset() or 0) + 1
        return found
    finally:
        consumer.close()


def _reader() -> dict[str, str | int | float | bool]:
    return {"group.id": "unused", "enable.auto.commit": False, "auto.offset.reset": "error", "log_level": 0}


def controller_of(bed: Testbed) -> int:
    if bed.target != "kafka":
        return bed.cluster.view().controller
    # Kafka's brokers name any broker; who leads the quorum stands in their files.
    states = [
        json.loads(path.read_text())
        for path in bed.directory.glob("*/logs/__cluster_metadata-0/quorum-state")
    ]
    return int(max(states, key=lambda state: int(state["leaderEpoch"]))["leaderId"])


def measure(bed: Testbed, way: str, number: int) -> Run:
    controller = controller_of(bed)
    others = [one for one in bed.numbers if one != controller]
    leader = controller if way == "kill controller" else others[number % len(others)]
    replicas = [leader, *(one for one in bed.numbers if one != leader)]
    topic = f"failover-{way.replace(' ', '-')}-{number}"
    admin = AdminClient({"bootstrap.servers": bed.cluster.bootstrap})
    bed.cluster.create_topic(topic, [replicas], {"min.insync.replicas": "2"})
    sender = Sender(bed.cluster.bootstrap, topic)
    sender.run_until(time.monotonic() + BEFORE_SECONDS)
    if bed.cluster.leader(topic) != leader:
        raise RuntimeError(f"{leader} does not lead {topic}")
    fault = time.monotonic()
    _strike(bed, way, leader)
    sender.run_past(fault)
    _mend(bed, way, leader)
    bed.cluster.wait_whole()
    bed.cluster.wait_in_sync(topic)
    found = read_back(bed.cluster.bootstrap, topic)
    admin.delete_topics([topic])[topic].result(30)
    return Run(
        bed.target,
        way,
        round(sender.longest_gap(fault - 0.5) * 1000, 1),
        sender.sent,
        len(sender.acknowledged),
        sender.failed,
        len(sender.acknowledged.keys() - set(found)),
        len(found) - len(set(found)),
    )


def _strike(bed: Testbed, way: str, leader: int) -> None:
    if way == "cut":
        assert bed.network is not None
        bed.network.silence(leader)
    elif way == "terminate":
        bed.cluster.terminate(leader)
    else:
        bed.cluster.kill(leader)


def _mend(bed: Testbed, way: str, leader: int) -> None:
    if way == "cut":
        assert bed.network is not None
        bed.network.heal()
        return
    if way == "terminate":
        bed.cluster.wait_ended(leader, 60)
    bed.cluster.restart(leader)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 100) * len(ordered) // 100) - 1))]


def table(runs: Sequence[Run]) -> str:
    lines = [
        "| the leader is | broker | runs | p50 ms | p95 ms | max ms | acked | lost | twice |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for way in WAYS:
        for target in ("headrace", "kafka"):
            some = [run for run in runs if (run.way, run.target) == (way, target)]
            if not some:
                continue
            gaps = [run.gap_ms for run in some]
            numbers = [percentile(gaps, 0.5), percentile(gaps, 0.95), max(gaps)]
            numbers += [sum(run.acknowledged for run in some), sum(run.lost for run in some)]
            numbers += [sum(run.twice for run in some)]
            cells = [way, target, str(len(some)), *(f"{number:.0f}" for number in numbers)]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.failover", description=__doc__)
    parser.add_argument("--runs", type=int, default=30, help="of each way, on each broker")
    parser.add_argument("--targets", nargs="+", choices=("headrace", "kafka"), default=["headrace", "kafka"])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--zookeepers", type=int, default=3)
    parser.add_argument("--output", type=Path, help="a JSON file for every single run")
    given = parser.parse_args()
    equipment = Equipment(hosts=True, zookeepers=given.zookeepers)
    if reason := equipment.unavailable():
        print(reason)
        return 2
    runs: list[Run] = []
    for target in given.targets:
        directory = Path(tempfile.mkdtemp(prefix="failover-"))
        with Testbed(directory, equipment, target=target) as bed:
            for number in range(given.runs):
                for way in given.ways:
                    runs.append(measure(bed, way, number))
                    print(json.dumps(asdict(runs[-1])), flush=True)
    if given.output:
        given.output.write_text(json.dumps([asdict(run) for run in runs], indent=1) + "\n")
    print(table(runs))
    return 1 if any(run.lost or run.twice for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
