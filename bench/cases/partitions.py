"""A thousand partitions: making them, keeping them, and writing to all of them."""

from __future__ import annotations

import time

from bench import load_generator
from bench.case import Case, Sample, Side
from bench.cases.produce import GB, check_count
from bench.process_cost import Meter, wait_until_quiet
from bench.quantity import Quantity, cpu_ratio, throughput_ratio
from bench.topics import Topics

PARTITIONS = 1000


class ManyPartitions(Case):
    """Create a topic of a thousand partitions on a warm broker, and spread records over them."""

    name = "partitions"
    group = "partitions"
    title = "1,000 partitions"
    quantities = (
        cpu_ratio("cpu_s_per_gb", "CPU s/GB", 0.3),
        throughput_ratio("records_per_s", "records/s"),
        Quantity("create_ms", "create", "ms"),
    )
    RECORDS = 1_000_000
    SIZE = 100

    def run(self, side: Side) -> Sample:
        topic = side.fresh_name(self.name)
        create_s = side.topics.create(topic, PARTITIONS)
        wait_until_quiet(side.broker.pid)
        records = side.scale.count(self.RECORDS)
        with Meter(side.broker.pid) as meter:
            load = load_generator.start_producer(
                side.broker.bootstrap,
                topic,
                records=records,
                size=self.SIZE,
                partitions=PARTITIONS,
                properties={"acks": 1, "batch.size": 65_536},
            ).result()
        check_count(side, topic, PARTITIONS, records)
        side.remove_topic(topic)
        return {
            "create_ms": create_s * 1e3,
            "cpu_s_per_gb": meter.cpu_s / (load.bytes / GB),
            "records_per_s": load.records / load.seconds,
            "requests": load.produce_requests,
            "broker_cpu_s": meter.cpu_s,
            "client_cpu_s": load.client_cpu_s,
            "noise_cores": meter.noise_cores,
        }


class PartitionMemory(Case):
    """What a thousand empty partitions add to the memory of a new process."""

    name = "partition-memory"
    group = "partitions"
    title = "1,000 idle partitions"
    warmed = False
    quantities = (Quantity("kb_each", "memory each", "KB"),)

    def run(self, side: Side) -> Sample:
        broker = side.separate_broker(side.fresh_name(self.name))
        broker.start()
        try:
            topics = Topics(broker.bootstrap)
            topics.create("first", 1)  # loads the code on the way
            wait_until_quiet(broker.pid)
            before = broker.resident_bytes()
            create_s = topics.create("many", PARTITIONS)
            wait_until_quiet(broker.pid)
            time.sleep(1.0)
            return {
                "kb_each": (broker.resident_bytes() - before) / PARTITIONS / 1e3,
                "cold_create_ms": create_s * 1e3,
            }
        finally:
            broker.stop()


CASES: list[Case] = [ManyPartitions(), PartitionMemory()]
