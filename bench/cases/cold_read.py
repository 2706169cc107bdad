"""A producer's latency while a consumer reads far more than is in the page cache."""

from __future__ import annotations

import sys

from bench import load_generator, page_cache
from bench.case import Case, Sample, Side
from bench.cases.produce import check_count
from bench.load_generator import LoadFailed
from bench.process_cost import Meter
from bench.quantity import Quantity

RECORD_BYTES = 1024
MOST_RESIDENT = 0.02


class ColdRead(Case):
    """A producer of 1,000 records a second beside a reader of old data.

    The topic is written once per side; before each run its segments are put out of the page cache.
    """

    name = "cold-read"
    group = "cold"
    title = "cold read"
    warmed = False
    quantities = (
        Quantity("p50_ms", "producer p50", "ms"),
        Quantity("p99_ms", "producer p99", "ms"),
        Quantity("alone_p99_ms", "producer p99 before it", "ms"),
        Quantity("read_mb_per_s", "reader", "MB/s", higher_is_better=True),
    )
    RATE = 1000
    ALONE_S = 5

    def prepare(self, side: Side) -> None:
        old = side.kept["cold-old"] = side.fresh_name("cold-old")
        new = side.kept["cold-new"] = side.fresh_name("cold-new")
        side.topics.create(old)
        side.topics.create(new)
        records = self._records(side)
        load_generator.start_producer(
            side.broker.bootstrap,
            old,
            records=records,
            size=RECORD_BYTES,
            properties={"acks": 1, "linger.ms": 5},
        ).result()
        check_count(side, old, 1, records)
        self._produce_alone(side)  # warms the path of single records

    def run(self, side: Side) -> Sample:
        segments = side.broker.log_directory / f"{side.kept['cold-old']}-0"
        page_cache.evict(segments)
        resident = page_cache.resident_fraction(segments)
        if resident > MOST_RESIDENT:
            raise LoadFailed(f"{resident:.0%} of {segments} is still in the page cache")
        alone = self._produce_alone(side)
        with Meter(side.broker.pid) as meter:
            producer = self._paced(side, sys.maxsize)
            reader = load_generator.start_consumer(
                side.broker.bootstrap, side.kept["cold-old"], records=self._records(side)
            )
            try:
                read = reader.result()
            finally:
                producer.stop()
            during = producer.result()
        return {
            "p50_ms": during.p50_us / 1e3,
            "p99_ms": during.p99_us / 1e3,
            "p999_ms": during.p999_us / 1e3,
            "max_ms": during.max_us / 1e3,
            "alone_p50_ms": alone.p50_us / 1e3,
            "alone_p99_ms": alone.p99_us / 1e3,
            "read_mb_per_s": read.bytes / read.seconds / 1e6,
            "read_gb": read.bytes / 1e9,
            "broker_cpu_s": meter.cpu_s,
            "noise_cores": meter.noise_cores,
        }

    def finish(self, side: Side) -> None:
        for purpose in ("cold-old", "cold-new"):
            if topic := side.kept.pop(purpose, None):
                side.remove_topic(topic)

    @staticmethod
    def _records(side: Side) -> int:
        return side.scale.cold_bytes // RECORD_BYTES

    def _paced(self, side: Side, records: int) -> load_generator.Running:
        return load_generator.start_producer(
            side.broker.bootstrap,
            side.kept["cold-new"],
            records=records,
            rate=self.RATE,
            properties={"acks": 1, "linger.ms": 0, "socket.nagle.disable": "true"},
        )

    def _produce_alone(self, side: Side) -> load_generator.Load:
        return self._paced(side, self.RATE * side.scale.count(self.ALONE_S)).result()


CASES: list[Case] = [ColdRead()]
