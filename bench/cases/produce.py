"""Producing: one record per request, then batches of several sizes."""

from __future__ import annotations

from bench import java_client, load_generator
from bench.case import Case, Sample, Side
from bench.load_generator import LoadFailed
from bench.process_cost import Meter
from bench.quantity import cpu_ratio, throughput_ratio

GB = 1e9


def check_count(side: Side, topic: str, partitions: int, expected: int) -> None:
    """A fast producer whose records are not in the log proves nothing."""
    found = side.topics.records(topic, partitions)
    if found != expected:
        raise LoadFailed(f"{side.name} holds {found} of the {expected} records of {topic}")


class SmallRequests(Case):
    """One record of 100 bytes in each request."""

    group = "small"
    quantities = (
        cpu_ratio("cpu_us_per_request", "µs/request", 0.4),
        throughput_ratio("requests_per_s", "requests/s"),
    )
    REQUESTS = 150_000

    def __init__(self, in_flight: int) -> None:
        self.name = f"small-{in_flight}"
        self.title = f"one record per request, {in_flight} in flight"
        self._properties: dict[str, str | int] = {
            "acks": 1,
            "batch.num.messages": 1,
            "linger.ms": 0,
            "max.in.flight": in_flight,
            # Without this the client's kernel would join small requests while one is unanswered.
            "socket.nagle.disable": "true",
        }

    def run(self, side: Side) -> Sample:
        topic = side.fresh_name(self.name)
        side.topics.create(topic)
        requests = side.scale.count(self.REQUESTS)
        with Meter(side.broker.pid) as meter:
            load = load_generator.start_producer(
                side.broker.bootstrap, topic, records=requests, properties=self._properties
            ).result()
        check_count(side, topic, 1, requests)
        if load.produce_requests < requests:
            raise LoadFailed(f"{load.produce_requests} requests for {requests} records: some were joined")
        side.remove_topic(topic)
        return {
            "cpu_us_per_request": meter.cpu_s / load.produce_requests * 1e6,
            "requests_per_s": load.produce_requests / load.seconds,
            "broker_cpu_s": meter.cpu_s,
            "client_cpu_s": load.client_cpu_s,
            "noise_cores": meter.noise_cores,
        }


class Batches(Case):
    """As fast as librdkafka can, in batches of at most so many bytes."""

    group = "produce"
    quantities = (cpu_ratio("cpu_s_per_gb", "CPU s/GB", 0.5), throughput_ratio("records_per_s", "records/s"))

    def __init__(
        self, name: str, title: str, *, batch: int, size: int, records: int, partitions: int, acks: str
    ) -> None:
        self.name, self.title = name, title
        self._size, self._records, self._partitions = size, records, partitions
        self._properties: dict[str, str | int] = {"acks": acks, "batch.size": batch, "linger.ms": 5}

    def run(self, side: Side) -> Sample:
        topic = side.fresh_name(self.name)
        side.topics.create(topic, self._partitions)
        records = side.scale.count(self._records)
        with Meter(side.broker.pid) as meter:
            load = load_generator.start_producer(
                side.broker.bootstrap,
                topic,
                records=records,
                size=self._size,
                partitions=self._partitions,
                properties=self._properties,
            ).result()
        check_count(side, topic, self._partitions, records)
        side.remove_topic(topic)
        return {
            "cpu_s_per_gb": meter.cpu_s / (load.bytes / GB),
            "records_per_s": load.records / load.seconds,
            "mb_per_s": load.bytes / load.seconds / 1e6,
            "requests": load.produce_requests,
            "bytes_per_request": load.bytes / max(1, load.produce_requests),
            "broker_cpu_s": meter.cpu_s,
            "client_cpu_s": load.client_cpu_s,
            "noise_cores": meter.noise_cores,
        }


class JavaBatches(Case):
    """Kafka's own ProducerPerformance with its default batch of 16 KB."""

    name = "produce-16k-java"
    group = "produce"
    title = "produce 100 B, 16 KB batches, Java client"
    # The target for throughput is about librdkafka; here the client is the bottleneck.
    quantities = (
        cpu_ratio("cpu_s_per_gb", "CPU s/GB", 0.5),
        throughput_ratio("records_per_s", "records/s", None),
    )
    RECORDS = 3_000_000
    SIZE = 100

    def run(self, side: Side) -> Sample:
        topic = side.fresh_name(self.name)
        side.topics.create(topic)
        records = side.scale.count(self.RECORDS)
        with Meter(side.broker.pid) as meter:
            rate = java_client.producer_performance(
                side.broker.bootstrap, topic, records=records, size=self.SIZE, properties={"acks": "1"}
            )
        check_count(side, topic, 1, records)
        side.remove_topic(topic)
        return {
            "cpu_s_per_gb": meter.cpu_s / (records * self.SIZE / GB),
            "records_per_s": rate,
            "broker_cpu_s": meter.cpu_s,
            "noise_cores": meter.noise_cores,
        }


CASES: list[Case] = [
    SmallRequests(5),
    SmallRequests(1),
    Batches(
        "produce-16k", "produce 100 B, 16 KB batches",
        batch=16_384, size=100, records=5_000_000, partitions=1, acks="1",
    ),
    JavaBatches(),
    Batches(
        "produce-64k", "produce 100 B, 64 KB batches",
        batch=65_536, size=100, records=6_000_000, partitions=1, acks="1",
    ),
    Batches(
        "produce-1m", "produce 100 B, 1 MB batches",
        batch=1_000_000, size=100, records=8_000_000, partitions=1, acks="1",
    ),
    Batches(
        "produce-1k-6p", "produce 1 KB, 6 partitions, acks=all",
        batch=1_000_000, size=1024, records=2_000_000, partitions=6, acks="all",
    ),
]  # fmt: skip
