"""Groups with members: how long a rebalance takes, and what it costs the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from statistics import median
from typing import Protocol

from confluent_kafka.admin import ResourceType

from bench import raw_client
from bench.case import Case, Sample, Side
from bench.cases.compaction import BROKER_ID, alter
from bench.classic_group_load import ClassicGroup
from bench.consumer_group_load import ConsumerGroup
from bench.process_cost import Meter
from bench.quantity import Goal, Quantity
from bench.raw_client import RawClient


class Group(Protocol):
    async def form(self) -> None: ...

    async def lose_one(self) -> float: ...

    async def gain_one(self) -> float: ...

    async def check_membership(self) -> None:
        """Every member is one still, and nothing goes on."""
        ...


class GroupKind(Protocol):
    def __call__(self, clients: list[RawClient], group_id: str, topic: str, partitions: int) -> Group: ...


class Rebalance(Case):
    """A member leaves, and comes back, again and again. The first rebalance of a group is not measured: it
    waits for members by configuration (group.initial.rebalance.delay.ms)."""

    group = "rebalance"
    quantities = (
        Quantity("ms", "until all are stable", "ms", Goal.RATIO_AT_MOST, 1.0),
        Quantity("cpu_ms", "broker CPU", "CPU ms/rebalance"),
    )
    MEMBERS = 100
    PARTITIONS = 1000
    PAIRS = 10
    """Each is a rebalance without the member, and one with it."""
    WARM_PAIRS = 50
    """So few requests in a run would leave a JVM cold."""

    def __init__(self, name: str, title: str, kind: GroupKind, settings: Mapping[str, str]) -> None:
        self.name = name
        self.title = title
        self._kind = kind
        self._settings = settings

    def prepare(self, side: Side) -> None:
        if self._settings:
            alter(side, ResourceType.BROKER, BROKER_ID, self._settings)
        topic = side.kept[self.name] = side.fresh_name(self.name)
        side.topics.create(topic, side.scale.count(self.PARTITIONS, 20))
        if side.scale.factor == 1.0:
            asyncio.run(self._rebalance(side, self.WARM_PAIRS))

    def run(self, side: Side) -> Sample:
        return asyncio.run(self._rebalance(side, side.scale.count(self.PAIRS)))

    def finish(self, side: Side) -> None:
        if topic := side.kept.pop(self.name, None):
            side.remove_topic(topic)

    async def _rebalance(self, side: Side, pairs: int) -> Sample:
        members = side.scale.count(self.MEMBERS, 5)
        clients = await raw_client.open_clients(side.broker.port, members)
        try:
            partitions = side.scale.count(self.PARTITIONS, 20)
            group = self._kind(clients, side.fresh_name(self.name), side.kept[self.name], partitions)
            await group.form()
            losses, gains = [], []
            with Meter(side.broker.pid) as meter:
                for _ in range(pairs):
                    losses.append(await group.lose_one())
                    gains.append(await group.gain_one())
        finally:
            await raw_client.close_clients(clients)
        return {
            "ms": median(losses + gains) * 1e3,
            "leave_ms": median(losses) * 1e3,
            "join_ms": median(gains) * 1e3,
            "longest_ms": max(losses + gains) * 1e3,
            "cpu_ms": meter.cpu_s / (2 * pairs) * 1e3,
            "broker_cpu_s": meter.cpu_s,
            "noise_cores": meter.noise_cores,
        }


CASES: list[Case] = [
    Rebalance("rebalance-classic", "rebalance, 100 members, 1,000 partitions", ClassicGroup, {}),
    Rebalance(
        "rebalance-server",
        "rebalance by the broker (KIP-848), 100 members, 1,000 partitions",
        ConsumerGroup,
        # By default a new assignment waits until a second has passed since the one before.
        {"group.consumer.assignment.interval.ms": "0"},
    ),
]
