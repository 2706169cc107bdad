"""The controller's duties: each goes on, whatever becomes of the others."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.cluster import description
from headrace.broker.cluster.balancing_decisions import BalancingDecisions
from headrace.broker.cluster.controller_duties import ControllerDuties
from headrace.broker.cluster.fencings import Fencings
from headrace.controller.policy import MIN_INSYNC_REPLICAS
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.core.ports_coordination import Member

SELF, DEAD, STRANGE = 1, 2, 9


class Cluster:
    """A controller whose broker 2 has gone, with one duty that does not do what it should."""

    def __init__(self) -> None:
        self.fenced = asyncio.Event()
        self.asked = 0
        self.complaints: list[dict[str, Any]] = []
        self.warnings: list[dict[str, Any]] = []
        self.told: list[dict[str, Any]] = []
        self.registrations = {
            each: SimpleNamespace(broker_id=each, epoch=5, fenced=False, stopping=False)
            for each in (SELF, DEAD, 3, 4)
        }
        self.members_answer: Any = {}
        self.fencings = Fencings()
        self.submit: Any = self._submit
        self.machine = SimpleNamespace(fence_brokers=self._fence)
        controller: Any = SimpleNamespace(is_active=True, epoch=1, submit=lambda decide: self.submit(decide))
        runtime: Any = SimpleNamespace(
            broker_id=SELF,
            loop=asyncio.get_running_loop(),
            config=SimpleNamespace(
                leader_imbalance_check_interval_seconds=300, headrace_balance_enable=False
            ),
            log=SimpleNamespace(error=self._complain, warning=self._warn, info=self._tell),
            clock=SimpleNamespace(wall_ms=lambda: 1234),
        )
        metadata: Any = SimpleNamespace(
            image=SimpleNamespace(
                brokers=self.registrations,
                configs=lambda _: {MIN_INSYNC_REPLICAS: "1"},
                configured_resources=list,
            ),
            store=SimpleNamespace(end=10, checkpoint_end=0),
        )
        coordination: Any = SimpleNamespace(
            session_timeout_ms=80,
            watch_members=lambda _: lambda: None,
            watch_session=lambda _: lambda: None,
            members=self._members,
        )
        decisions = BalancingDecisions(runtime.clock, self._tell)
        self.duties = ControllerDuties(
            runtime,
            metadata,
            controller,
            lambda: BrokerEpoch(5),
            coordination,
            self.fencings,
            decisions,
        )

    def _warn(self, event: str, **fields: Any) -> None:
        self.warnings.append({"event": event, **fields})

    def _tell(self, event: str, **fields: Any) -> None:
        self.told.append({"event": event, **fields})

    def _complain(self, event: str, **fields: Any) -> None:
        self.complaints.append({"event": event, **fields})

    async def _submit(self, decide: Any) -> None:
        decide(self.machine)

    def _fence(self, ids: list[int], *, epochs: dict[int, int]) -> None:
        for each in ids:
            self.registrations[each].fenced = True
            assert epochs[each] == 5
        self.fenced.set()

    async def _members(self) -> Any:
        self.asked += 1
        if isinstance(self.members_answer, Exception):
            raise self.members_answer
        if asyncio.isfuture(self.members_answer):
            return await self.members_answer
        return self.members_answer

    async def fences(self) -> None:
        self.duties.start(deposed=SELF)
        for lively in (3, 4):
            self.duties._liveness.heard(lively, asyncio.get_running_loop().time() + 3600)
        self.duties._liveness.suspect(DEAD)
        self.duties._wake()
        async with asyncio.timeout(60):
            await self.fenced.wait()


async def test_the_dead_are_fenced_while_the_members_cannot_be_read() -> None:
    cluster = Cluster()
    cluster.members_answer = ValueError("a strange answer")
    await cluster.fences()
    async with asyncio.timeout(60):
        while cluster.asked < 3:
            await asyncio.sleep(0.005)
    await cluster.duties.stop()
    assert {each["duty"] for each in cluster.complaints} == {"registration"}
    assert cluster.fencings._last == {DEAD: (1234, "its connection broke and its port refuses")}


@pytest.mark.parametrize("announced", [False, True])
async def test_a_broker_that_announced_its_end_is_no_warning(announced: bool) -> None:
    cluster = Cluster()
    cluster.registrations[DEAD].stopping = announced
    cluster.members_answer = asyncio.get_running_loop().create_future()
    await cluster.fences()
    await cluster.duties.stop()
    reason = "it was stopped" if announced else "its connection broke and its port refuses"
    said = {"event": "broker fenced", "broker_id": DEAD, "reason": reason}
    assert (cluster.told, cluster.warnings) == (([said], []) if announced else ([], [said]))
    assert cluster.fencings._last == {DEAD: (1234, reason)}


async def test_the_dead_are_fenced_while_the_members_are_being_read() -> None:
    cluster = Cluster()
    cluster.members_answer = asyncio.get_running_loop().create_future()
    await cluster.fences()
    assert cluster.asked == 1
    await cluster.duties.stop()


async def test_one_registration_that_fails_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.members_answer = {
        each: Member(BrokerId(each), BrokerEpoch(7), b"") for each in (SELF, 3, 4, STRANGE)
    }
    tried: list[int] = []

    async def register(told: Any, epoch: int) -> None:
        tried.append(told)
        if told == SELF:
            raise RuntimeError("a defect")
        cluster.registrations[told] = SimpleNamespace(broker_id=told, epoch=epoch, fenced=False)

    cluster.duties._register = register  # type: ignore[method-assign]  # the commit is not the subject
    monkeypatch.setattr(description, "decode", lambda broker_id, _: broker_id)
    await cluster.fences()
    async with asyncio.timeout(60):
        while tried.count(SELF) < 2:
            await asyncio.sleep(0.005)
    await cluster.duties.stop()
    assert tried[:4] == [SELF, 3, 4, STRANGE]
    assert "registration" in {each["duty"] for each in cluster.complaints}
