"""Transactions: how many are completed for a second of the broker's CPU."""

from __future__ import annotations

import asyncio
import time

from bench import raw_client, transaction_load
from bench.case import Case, Sample, Side
from bench.load_generator import LoadFailed
from bench.process_cost import Meter
from bench.quantity import Goal, Quantity, throughput_ratio
from bench.raw_client import TRANSACTION_KEYS
from bench.transaction_load import RECORDS_EACH, OlderProducer, TransactionalProducer

LIMIT_S = 300.0
POLL_S = 0.01


class Transactions(Case):
    """Ten records to one partition, committed. Counted when the marker is in the log, not when the client
    is answered."""

    group = "transactions"
    quantities = (
        Quantity(
            "per_cpu_s", "completed", "transactions/CPU s", Goal.RATIO_AT_LEAST, 2.0, higher_is_better=True
        ),
        throughput_ratio("transactions_per_s", "transactions/s", None),
    )
    TRANSACTIONS = 10_000
    PRODUCERS = 20
    PARTITIONS = 6

    def __init__(self, name: str, title: str, kind: type[TransactionalProducer]) -> None:
        self.name = name
        self.title = title
        self._kind = kind

    def run(self, side: Side) -> Sample:
        topic = side.fresh_name(self.name)
        side.topics.create(topic, self.PARTITIONS)
        times = side.scale.count(self.TRANSACTIONS // self.PRODUCERS)
        sample = asyncio.run(self._measure(side, topic, times))
        side.remove_topic(topic)
        return sample

    async def _measure(self, side: Side, topic: str, times: int) -> Sample:
        clients = await raw_client.open_clients(side.broker.port, self.PRODUCERS)
        try:
            names = [f"{topic}-{number}" for number in range(self.PRODUCERS)]
            await raw_client.find_coordinators(clients[0], TRANSACTION_KEYS, names)
            producers = [
                self._kind(client, name, topic, number % self.PARTITIONS)
                for number, (client, name) in enumerate(zip(clients, names, strict=True))
            ]
            for producer in producers:
                await producer.initialise()
            await transaction_load.run(producers, 1)  # the first Produce of a connection learns its topic
            with Meter(side.broker.pid) as meter:
                seconds = await transaction_load.run(producers, times)
                self._wait_for_markers(side, topic, (times + 1) * self.PRODUCERS)
        finally:
            await raw_client.close_clients(clients)
        transactions = times * self.PRODUCERS
        return {
            "per_cpu_s": transactions / max(meter.cpu_s, 0.01),
            "transactions_per_s": transactions / seconds,
            "cpu_us_each": meter.cpu_s / transactions * 1e6,
            "retries": sum(producer.retries for producer in producers),
            "broker_cpu_s": meter.cpu_s,
            "noise_cores": meter.noise_cores,
        }

    def _wait_for_markers(self, side: Side, topic: str, transactions: int) -> None:
        """A marker takes an offset, like a record."""
        wanted = transactions * (RECORDS_EACH + 1)
        give_up = time.monotonic() + LIMIT_S
        while (found := side.topics.records(topic, self.PARTITIONS)) != wanted:
            if found > wanted or time.monotonic() > give_up:
                raise LoadFailed(f"{side.name} holds {found} offsets of {topic} instead of {wanted}")
            time.sleep(POLL_S)


CASES: list[Case] = [
    Transactions("transactions-v2", "transactions of 10 records", TransactionalProducer),
    Transactions("transactions-v1", "transactions of 10 records, partitions named first", OlderProducer),
]
