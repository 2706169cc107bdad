"""Consuming what is in the page cache, and the way of one record from producer to consumer."""

from __future__ import annotations

from bench import load_generator
from bench.case import Case, Sample, Side
from bench.cases.produce import GB, check_count
from bench.process_cost import Meter
from bench.quantity import Quantity, cpu_ratio, throughput_ratio


class Consume(Case):
    """Read a topic from its start, several times over."""

    group = "consume"
    quantities = (cpu_ratio("cpu_s_per_gb", "CPU s/GB", 0.8), throughput_ratio("records_per_s", "records/s"))

    def __init__(
        self, name: str, title: str, *, size: int, records: int, partitions: int, passes: int
    ) -> None:
        self.name, self.title = name, title
        self._size, self._records, self._partitions, self._passes = size, records, partitions, passes

    def prepare(self, side: Side) -> None:
        topic = side.kept[self.name] = side.fresh_name(self.name)
        records = side.scale.count(self._records)
        side.topics.create(topic, self._partitions)
        load_generator.start_producer(
            side.broker.bootstrap,
            topic,
            records=records,
            size=self._size,
            partitions=self._partitions,
            properties={"acks": 1, "batch.size": 65_536, "linger.ms": 5},
        ).result()
        check_count(side, topic, self._partitions, records)

    def run(self, side: Side) -> Sample:
        with Meter(side.broker.pid) as meter:
            load = load_generator.start_consumer(
                side.broker.bootstrap,
                side.kept[self.name],
                records=side.scale.count(self._records),
                partitions=self._partitions,
                passes=self._passes,
            ).result()
        return {
            "cpu_s_per_gb": meter.cpu_s / (load.bytes / GB),
            "records_per_s": load.records / load.seconds,
            "mb_per_s": load.bytes / load.seconds / 1e6,
            "requests": load.fetch_requests,
            "broker_cpu_s": meter.cpu_s,
            "client_cpu_s": load.client_cpu_s,
            "noise_cores": meter.noise_cores,
        }

    def finish(self, side: Side) -> None:
        if topic := side.kept.pop(self.name, None):
            side.remove_topic(topic)


class EndToEnd(Case):
    """One record at a time: produced, and waited for by a consumer that is already there."""

    name = "latency"
    group = "latency"
    title = "end to end, one at a time"
    quantities = (
        Quantity("p50_ms", "p50", "ms"),
        Quantity("p99_ms", "p99", "ms"),
    )
    ROUNDS = 20_000

    def run(self, side: Side) -> Sample:
        topic = side.fresh_name(self.name)
        side.topics.create(topic)
        with Meter(side.broker.pid) as meter:
            load = load_generator.ping_pong(
                side.broker.bootstrap, topic, rounds=side.scale.count(self.ROUNDS, least=100)
            )
        side.remove_topic(topic)
        return {
            "p50_ms": load.p50_us / 1e3,
            "p99_ms": load.p99_us / 1e3,
            "broker_cpu_s": meter.cpu_s,
            "noise_cores": meter.noise_cores,
        }


CASES: list[Case] = [
    Consume("consume-100", "consume 100 B", size=100, records=6_000_000, partitions=1, passes=3),
    Consume(
        "consume-1k-6p", "consume 1 KB, 6 partitions", size=1024, records=2_000_000, partitions=6, passes=3
    ),
    EndToEnd(),
]
