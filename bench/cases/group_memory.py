"""What a thousand groups of ten members take of a broker's memory."""

from __future__ import annotations

import asyncio
import time

from bench import raw_client
from bench.broker import Broker
from bench.case import Case, Sample, Side
from bench.cases.rebalances import Group, GroupKind
from bench.cases.resting import MB, allow_connections
from bench.classic_group_load import ClassicGroup
from bench.consumer_group_load import ConsumerGroup
from bench.process_cost import wait_until_quiet
from bench.quantity import Goal, Quantity
from bench.raw_client import RawClient
from bench.topics import Topics

TOPIC = "read"


class GroupMemory(Case):
    """Every member has its own partition and, as far as descriptors go, its own connection. A new process in
    each run."""

    group = "group-memory"
    warmed = False
    quantities = (
        Quantity("all_mb", "memory in all", "MB", Goal.VALUE_AT_MOST, 100.0),
        Quantity("kb_each", "memory per member", "KB"),
    )
    GROUPS = 1000
    MEMBERS = 10
    AT_ONCE = 100
    """Groups that are formed together."""
    SETTLE_S = 2.0

    def __init__(self, name: str, title: str, kind: GroupKind) -> None:
        self.name = name
        self.title = title
        self._kind = kind
        self._connections = 0

    def prepare(self, side: Side) -> None:  # noqa: ARG002 - the shape of every case
        self._connections = allow_connections(self.GROUPS * self.MEMBERS)

    def run(self, side: Side) -> Sample:
        broker = side.separate_broker(side.fresh_name(self.name))
        broker.start()
        try:
            Topics(broker.bootstrap).create(TOPIC, self.MEMBERS)
            return asyncio.run(self._fill(broker, side.scale.count(self.GROUPS, 5)))
        finally:
            broker.stop()

    async def _fill(self, broker: Broker, groups: int) -> Sample:
        clients: list[RawClient] = []
        try:
            # The first one has the internal topic made and the code loaded.
            await (await self._group(broker, 0, clients)).form()
            before = self._resident(broker)
            formed: list[Group] = []
            for at in range(1, 1 + groups, self.AT_ONCE):
                numbers = range(at, min(at + self.AT_ONCE, 1 + groups))
                forming = [await self._group(broker, number, clients) for number in numbers]
                await asyncio.gather(*(group.form() for group in forming))
                formed += forming
            after = self._resident(broker)
            for group in formed:
                await group.check_membership()
        finally:
            await raw_client.close_clients(clients)
        return {
            "all_mb": after / MB,
            "grown_mb": (after - before) / MB,
            "connections": len(clients),
            "kb_each": (after - before) / (groups * self.MEMBERS) / 1e3,
        }

    async def _group(self, broker: Broker, number: int, clients: list[RawClient]) -> Group:
        """With new clients; when there can be no more, with those of a group that was formed long ago."""
        if len(clients) + self.MEMBERS <= self._connections:
            clients += await raw_client.open_clients(broker.port, self.MEMBERS)
        at = number * self.MEMBERS % len(clients)
        return self._kind(clients[at : at + self.MEMBERS], f"group-{number}", TOPIC, self.MEMBERS)

    def _resident(self, broker: Broker) -> int:
        wait_until_quiet(broker.pid)
        time.sleep(self.SETTLE_S)
        return broker.resident_bytes()


CASES: list[Case] = [
    GroupMemory("group-memory-classic", "1,000 groups of 10 members", ClassicGroup),
    GroupMemory("group-memory-server", "1,000 groups of 10 members, KIP-848", ConsumerGroup),
]
