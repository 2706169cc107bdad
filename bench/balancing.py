"""What self-balancing does to a client's latency: a new broker comes, and takes its share under load.

    python -m bench.balancing --megabytes 600 --seconds 30

librdkafka sends at a steady rate with acks=all to a topic that one broker leads; another topic has the
bytes. First nothing moves, then self-balancing is turned on, with the settings that it has by itself but for
how often it looks and from how many bytes on. It measures until the brokers are even.
"""

from __future__ import annotations

import argparse
import json
import statistics
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from confluent_kafka import KafkaError, Message, Producer
from tests.cluster.equipped import WithoutRacks

from bench.link import fill

PARTITIONS: Final = 16
LARGE: Final = 8
BROKERS: Final = 3
LIMIT_SECONDS: Final = 900.0
SETTLE_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 1.0
SETTINGS: Final = {
    "headrace.balance.interval.ms": "2000",
    "headrace.balance.min.bytes": "1000000",
    "headrace.balance.max.disk.percent": "100",
}


class Sent(NamedTuple):
    """A record that was acknowledged."""

    at: float
    milliseconds: float


class Client:
    """Sends at its rate in a thread of its own, and notes how long each acknowledgement took."""

    def __init__(self, bootstrap: str, topic: str, rate: int, size: int) -> None:
        self.sent: list[Sent] = []
        self.failures: list[str] = []
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
        self._topic = topic
        self._rate = rate
        self._padding = bytes(size)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="client")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join()
        self._producer.flush(60)

    def _run(self) -> None:
        began, count = time.monotonic(), 0
        while not self._ends.is_set():
            while time.monotonic() >= began + count / self._rate:
                value = struct.pack(">d", time.monotonic()) + self._padding
                self._producer.produce(
                    self._topic, value, partition=count % PARTITIONS, on_delivery=self._told
                )
                count += 1
            self._producer.poll(0.001)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        now = time.monotonic()
        value = message.value()
        if error is not None or value is None:
            self.failures.append(str(error))
            return
        assert isinstance(value, bytes)
        (at,) = struct.unpack(">d", value[:8])
        self.sent.append(Sent(at, 1000 * (now - at)))

    def between(self, began: float, ended: float) -> list[float]:
        return sorted(each.milliseconds for each in self.sent if began <= each.at < ended)


def percentile(values: list[float], share: float) -> float:
    return values[min(int(len(values) * share), len(values) - 1)]


def told(name: str, values: list[float]) -> float:
    p99 = percentile(values, 0.99)
    print(
        f"{name}: {len(values):,} records, p50 {statistics.median(values):.2f} ms, p99 {p99:.2f} ms,"
        f" p99.9 {percentile(values, 0.999):.2f} ms, at most {values[-1]:.0f} ms",
        flush=True,
    )
    return p99


def _is_spread(cluster: WithoutRacks) -> bool:
    """Whether nothing moves, and each broker has as many as another. A broker is asked, and not a command:
    that would take more of the machine than what is measured."""
    found = cluster.view("skewed", "large").partitions.values()
    counts = Counter(broker for each in found for broker in each.replicas)
    at_rest = all(len(each.replicas) == 2 == len(each.isr) for each in found)
    return at_rest and len(counts) == BROKERS + 1 and max(counts.values()) - min(counts.values()) <= 2


def _balance(cluster: WithoutRacks) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.headrace("cluster", "balance", "--look", "0", "--json"))
    return found


def measure(directory: Path, megabytes: int, rate: int, size: int, seconds: float) -> bool:
    with WithoutRacks(directory, BROKERS, SETTINGS) as cluster:
        cluster.create_topic("skewed", [[1, 2]] * PARTITIONS)
        cluster.create_topic("large", [[1, 2]] * LARGE)
        fill(cluster.bootstrap, "large", megabytes, LARGE)
        cluster.add(BROKERS + 1)
        with Client(cluster.bootstrap, "skewed", rate, size) as client:
            time.sleep(SETTLE_SECONDS)
            alone = time.monotonic()
            time.sleep(seconds)
            cluster.headrace("config", "set", "--broker-default", "headrace.balance.enable=true")
            began = time.monotonic()
            while not _is_spread(cluster):
                assert time.monotonic() < began + LIMIT_SECONDS, f"not even: {_balance(cluster)}"
                time.sleep(LOOK_SECONDS)
            ended = time.monotonic()
            time.sleep(seconds)
            after = time.monotonic()
        found = _balance(cluster)
        replicas = {each["id"]: each["replicas"] for each in found["brokers"]}
        print(f"even after {ended - began:.0f} s: replicas {replicas}, uneven: {found['uneven']}")
        print(f"failed writes: {len(client.failures)}")
        before = told("before", client.between(alone, began))
        while_moving = told("while it moves", client.between(began, ended))
        told("after", client.between(ended, after))
        print(f"p99 while it moves, beside before: {while_moving / before:.2f}")
        return not client.failures and not found["uneven"]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=600, help="in the topic that is not written to")
    parser.add_argument("--rate", type=int, default=300, help="records a second")
    parser.add_argument("--size", type=int, default=1000, help="bytes of a record")
    parser.add_argument("--seconds", type=float, default=30.0, help="before, and after")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        passed = measure(Path(directory), options.megabytes, options.rate, options.size, options.seconds)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
