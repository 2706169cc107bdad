"""The duty: when it looks, what it says, and that it does nothing for a cluster that is not whole."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.cluster.balancing_decisions import KEPT, BalancingDecisions
from headrace.broker.cluster.self_balancing import SelfBalancing
from headrace.broker.runtime.health_report import HealthReport
from headrace.config.broker import BrokerConfig
from headrace.controller.self_balancing.reports import (
    DirectorySpace,
    LedPartition,
    LoadReport,
    TopicTraffic,
)
from headrace.controller.self_balancing.survey import MOVED_REPLICAS
from headrace.core.errors import NotController
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.self_balancing.test_moving import join

PLENTY = DirectorySpace("/data", True, 10**12, 9 * 10**11)
PARTITIONS = 8


class Duty:
    """Brokers 0 and 1 hold everything, broker 2 nothing; the metadata is real."""

    def __init__(self) -> None:
        self.cluster = Cluster((0, 1, 2))
        self.cluster.create("orders", assignments=[(n, (n % 2, 1 - n % 2)) for n in range(PARTITIONS)])
        self.events: list[dict[str, Any]] = []
        self.now = 0.0
        self.given = {"headrace.balance.enable": "true", "headrace.balance.max.moves": "2"}
        self.reports: dict[int, LoadReport | str] = {}
        self.elections: list[Any] = []
        self.clock: Any = SimpleNamespace(wall_ms=lambda: 7)
        self.decisions = BalancingDecisions(self.clock, self._tell)
        self.duty = self._make()

    def _make(self) -> SelfBalancing:
        duty = self
        log = SimpleNamespace(info=self._tell, warning=self._tell)

        class Runtime:
            broker_id = 0
            loop = SimpleNamespace(time=lambda: duty.now)
            turns = SimpleNamespace(is_over=False)

            def __init__(self) -> None:
                self.log = log

            @property
            def config(self) -> BrokerConfig:
                return BrokerConfig.parse(duty.given)

        runtime: Any = Runtime()
        metadata: Any = SimpleNamespace(image=self.cluster.image)
        controller: Any = SimpleNamespace(
            submit=lambda decide: self._submit(decide), elect_leaders=self._elect
        )
        made = SelfBalancing(runtime, metadata, controller, self.decisions)
        made._ask = self._ask  # type: ignore[method-assign]  # no network here
        return made

    def _tell(self, event: str, **fields: Any) -> None:
        self.events.append({"event": event, **fields})

    async def _submit(self, decide: Any) -> Any:
        return self.cluster.do(decide(self.cluster.machine))

    async def _elect(self, _kind: int, asked: Any) -> None:
        self.elections += asked
        self.cluster.do(self.cluster.machine.elect_leaders(0, asked))

    async def _ask(self, broker_id: int) -> LoadReport | str:
        if broker_id in self.reports:
            return self.reports[broker_id]
        led = tuple(LedPartition(each, 10, 10**9) for each in range(PARTITIONS)) if broker_id == 0 else ()
        return LoadReport([PLENTY], {"orders": TopicTraffic(0, 0, led)})

    async def looks(self, count: int = 1) -> list[str]:
        """What it says meanwhile."""
        self.events.clear()
        for _ in range(count):
            self.now += 60
            await self.duty.act()
        return [each["event"] for each in self.events]

    @property
    def reasons(self) -> list[str]:
        return [each["reason"] for each in self.events if "reason" in each]

    @property
    def moving(self) -> list[int]:
        return self.cluster.image.topics_by_name["orders"].exceptional_partitions()


async def test_it_is_off_by_default_and_asks_nobody() -> None:
    duty = Duty()
    duty.given = {}
    duty.reports = dict.fromkeys(range(3), "it must not be asked")
    assert await duty.looks(3) == []


async def test_it_knows_rates_before_it_moves_anything_and_then_moves_a_few() -> None:
    duty = Duty()
    assert await duty.looks() == ["self-balancing does nothing"]
    assert duty.reasons == ["rates are known at the next look"]
    assert await duty.looks() == ["self-balancing moves a partition"] * 2
    assert len(duty.moving) == 2
    assert duty.events[0]["bytes"] == 10**9
    assert duty.events[0]["reason"].endswith("of broker 2 100% below even")
    assert await duty.looks(3) == [], "two are on their way, and no more may be"


async def test_it_looks_at_its_interval_only() -> None:
    duty = Duty()
    await duty.looks()
    duty.now += 59
    await duty.duty.act()
    assert duty.moving == []


async def test_a_cluster_that_is_not_whole_is_left_alone_and_the_reason_is_said_once() -> None:
    duty = Duty()
    await duty.looks()
    duty.cluster.fence(1)
    assert await duty.looks(3) == ["self-balancing does nothing"]
    assert duty.reasons == ["broker 1 is down or about to stop"]
    duty.cluster.fence(1, fenced=False)
    assert await duty.looks() == ["self-balancing does nothing"]
    assert duty.reasons == ["replicas are not in sync: orders-0, orders-1, orders-2 and 5 more"]
    assert duty.moving == []


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("no answer in 10 s", "broker 2 does not tell its load: no answer in 10 s"),
        (LoadReport([PLENTY._replace(free_bytes=10**9)]), "log directory /data of broker 2 is 100% full"),
    ],
)
async def test_a_broker_that_is_silent_or_full_hinders_it(told: LoadReport | str, why: str) -> None:
    duty = Duty()
    duty.reports[2] = told
    await duty.looks(3)
    assert len(duty.reasons) == 1
    assert duty.reasons[0].startswith(why)
    assert duty.moving == []


async def test_turned_off_it_takes_back_what_it_began() -> None:
    duty = Duty()
    await duty.looks(2)
    assert MOVED_REPLICAS in duty.cluster.image.topic_configs("orders")
    duty.given = {}
    assert await duty.looks(2) == ["self-balancing cancelled its moves"]
    assert duty.moving == []
    assert duty.cluster.image.topic_configs("orders") == {}


async def test_the_next_controller_ends_what_this_one_began() -> None:
    duty = Duty()
    await duty.looks(2)
    partition = duty.moving[0]
    heir = duty._make()
    join(duty.cluster, 0, 1, 2, partition=partition)
    await heir.act()
    ended = [each for each in duty.events if each["event"] == "self-balancing move ended"]
    assert [(each["partition"], each["how"]) for each in ended] == [(f"orders-{partition}", "as planned")]
    assert duty.elections == [("orders", partition)], "its first replica leads"


async def test_the_end_of_the_term_is_nothing_to_complain_of() -> None:
    duty = Duty()

    async def fenced(decide: Any) -> Any:
        assert decide is not None
        raise NotController("another is")

    await duty.looks()
    duty._submit = fenced  # type: ignore[method-assign]  # the term is over
    with pytest.raises(NotController):
        await duty.looks()


def test_the_latest_decisions_are_told_with_the_health_report() -> None:
    told: list[str] = []
    clock: Any = SimpleNamespace(wall_ms=lambda: 5)
    decisions = BalancingDecisions(clock, lambda event, **_: told.append(event))
    report = HealthReport()
    decisions.report_to(report)
    read, _ = report._figures["balancing.decisions"]
    assert read() is None
    for number in range(KEPT + 3):
        decisions.moved("moves", f"orders-{number}", "why")
    decisions.idle("even")
    decisions.idle("even")
    latest = json.loads(str(read()))
    assert len(latest) == KEPT
    assert latest[-1] == [5, "nothing", "even"]
    assert told.count("self-balancing does nothing") == 1
