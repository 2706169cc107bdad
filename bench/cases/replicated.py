"""Producing with three replicas and acks=all: what it costs the whole cluster."""

from __future__ import annotations

from bench import load_generator
from bench.case import Case, Sample, Side
from bench.load_generator import LoadFailed
from bench.process_cost import Meter
from bench.quantity import Quantity, cpu_ratio, throughput_ratio

REPLICAS = 3
MILLION = 1e6

SYNCED = {"flush.messages": "1"}
ONE_BY_ONE: dict[str, str | int] = {
    "batch.num.messages": 1,
    "linger.ms": 0,
    # Without this the client's kernel would join small requests while one is unanswered.
    "socket.nagle.disable": "true",
}


class Replicated(Case):
    """Idempotent, acks=all, min.insync.replicas=2; the CPU of all brokers, and of ZooKeeper by itself.

    Apache Kafka has its controllers in its brokers, so what ZooKeeper takes belongs to the comparison too: it
    is told as a figure of its own.
    """

    group = "replicated"
    clustered = True
    quantities = (
        cpu_ratio("cpu_s_per_million", "CPU s/million records", 0.4),
        Quantity("whole_cpu_s_per_million", "CPU with ZooKeeper", "CPU s/million records"),
        throughput_ratio("records_per_s", "records/s"),
    )

    def __init__(
        self,
        name: str,
        title: str,
        *,
        size: int,
        records: int,
        partitions: int,
        batch: int = 0,
        config: dict[str, str] | None = None,
    ) -> None:
        """`batch`: the most bytes of a batch; 0 for librdkafka's own limit, 1 for one record per request."""
        self.name, self.title = name, title
        self._size, self._records, self._partitions = size, records, partitions
        self._single = batch == 1
        self._config = {"min.insync.replicas": "2", **(config or {})}
        self._properties: dict[str, str | int] = {"acks": "all", "enable.idempotence": "true"}
        if self._single:
            self._properties |= ONE_BY_ONE
        else:
            self._properties |= {"linger.ms": 5, **({"batch.size": batch} if batch else {})}

    def run(self, side: Side) -> Sample:
        cluster = side.cluster
        topic = side.fresh_name(self.name)
        cluster.topics.create(topic, self._partitions, REPLICAS, self._config)
        records = side.scale.count(self._records)
        brokers = cluster.broker_pids
        with Meter(*brokers, *cluster.coordinator_pids) as meter:
            load = load_generator.start_producer(
                cluster.bootstrap,
                topic,
                records=records,
                size=self._size,
                partitions=self._partitions,
                properties=self._properties,
            ).result()
        found = cluster.topics.records(topic, self._partitions)
        if found != records:
            raise LoadFailed(f"{side.name} holds {found} of the {records} records of {topic}")
        if self._single and load.produce_requests < records:
            raise LoadFailed(f"{load.produce_requests} requests for {records} records: some were joined")
        cluster.remove_topic(topic)
        broker_cpu_s = sum(meter.each[: len(brokers)])
        return {
            "cpu_s_per_million": broker_cpu_s / records * MILLION,
            "whole_cpu_s_per_million": meter.cpu_s / records * MILLION,
            "records_per_s": load.records / load.seconds,
            "mb_per_s": load.bytes / load.seconds / 1e6,
            "requests": load.produce_requests,
            "bytes_per_request": load.bytes / max(1, load.produce_requests),
            "broker_cpu_s": broker_cpu_s,
            "coordinator_cpu_s": meter.cpu_s - broker_cpu_s,
            "most_by_one_broker_s": max(meter.each[: len(brokers)]),
            "client_cpu_s": load.client_cpu_s,
            "noise_cores": meter.noise_cores,
        }


def _cases(suffix: str, also: str, config: dict[str, str] | None, part: float) -> list[Case]:
    """The loads, and a `part` of the records of each."""

    def count(whole: int) -> int:
        return int(whole * part)

    return [
        Replicated(
            f"replicated-100-1p{suffix}", f"3 replicas, 100 B, 1 partition{also}",
            size=100, records=count(3_000_000), partitions=1, config=config,
        ),
        Replicated(
            f"replicated-100-6p{suffix}", f"3 replicas, 100 B, 6 partitions{also}",
            size=100, records=count(3_000_000), partitions=6, config=config,
        ),
        Replicated(
            f"replicated-1k-1p{suffix}", f"3 replicas, 1 KB, 1 partition{also}",
            size=1024, records=count(500_000), partitions=1, config=config,
        ),
        Replicated(
            f"replicated-1k-6p{suffix}", f"3 replicas, 1 KB, 6 partitions{also}",
            size=1024, records=count(500_000), partitions=6, config=config,
        ),
    ]  # fmt: skip


CASES: list[Case] = [
    *_cases("", "", None, 1.0),
    Replicated(
        "replicated-16k", "3 replicas, 100 B, 1 partition, 16 KB batches",
        size=100, records=2_000_000, partitions=1, batch=16_384,
    ),
    Replicated(
        "replicated-small", "3 replicas, one record per request",
        size=100, records=50_000, partitions=1, batch=1,
    ),
    *_cases("-synced", ", flush.messages=1", SYNCED, 0.4),
    Replicated(
        "replicated-small-synced", "3 replicas, one record per request, flush.messages=1",
        size=100, records=2_000, partitions=1, batch=1, config=SYNCED,
    ),
]  # fmt: skip
