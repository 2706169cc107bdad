"""A worker's part: it starts and stops what the group and the configurations say, whoever is slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from headrace.client import state_topic
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, ConnectionLost, Refused
from headrace.client.refusals import refusal
from headrace.client.transactions import NewProducer
from headrace.connect import operations
from headrace.connect.config_records import Entry, Target
from headrace.connect.plugins import Plugins, described
from headrace.connect.runner import Condition, Report, Run
from headrace.connect.worker import Worker
from headrace.protocol.error_codes import ErrorCode
from tests.unit.connect.memory import MemoryConfigs, MemoryStatuses, NotingRunner, WellSource

CONFIG = {"connector.class": "WellSource", "topic": "t", "name": "w"}


class Runner(NotingRunner):
    def __init__(self) -> None:
        super().__init__()
        self.events: list[str] = []
        self.reports: dict[str, Callable[[Report], None]] = {}
        self.hold = asyncio.Event()
        self.hold.set()
        self.dead = asyncio.Event()

    def start(self, run: Run, report: Callable[[Report], None]) -> None:
        self.events.append(f"start {run.name}")
        self.reports[run.name] = report
        report(Report(run.name, Condition.RUNNING, tasks=({"a": "b"},)))

    async def stop(self, name: str) -> None:
        await self.hold.wait()
        self.events.append(f"stop {name}")

    async def abandon(self, name: str) -> None:
        self.events.append(f"abandon {name}")

    async def failed(self) -> None:
        await self.dead.wait()
        raise ClientFailure("Spark has ended")


class Group:
    """In the place of the brokers' group: what is assigned is said by the test."""

    def __init__(self, worker: Worker) -> None:
        self.given: list[str] = []
        self.joins = self.refused = 0
        self.is_lost = False
        self.refusal: Refused | None = None
        self.has_left = False
        self._stays = asyncio.Event()
        member: Any = worker._member
        member.join, member.heartbeat, member.leave = self._join, self._heartbeat, self._leave

    def rebalance(self, *given: str) -> None:
        self.given = list(given)
        self._stays.clear()

    async def _join(self) -> list[str]:
        if self.is_lost:
            raise ConnectionLost("nobody answers")
        if self.refusal is not None:
            self.refused += 1
            raise self.refusal
        self.joins += 1
        self._stays.set()
        return self.given

    async def _heartbeat(self) -> bool:
        if self.is_lost:
            raise ConnectionLost("nobody answers")
        return self._stays.is_set()

    async def _leave(self) -> None:
        self.has_left = True


class Bench:
    def __init__(self) -> None:
        self.configs, self.statuses, self.runner = MemoryConfigs(), MemoryStatuses(), Runner()
        plugins = Plugins([described(WellSource, "well")])
        cluster = Cluster("127.0.0.1:9")
        self.worker = Worker(
            cluster, "g", "http://w:1", "w:1", self.configs, self.statuses, plugins, self.runner,
            session_timeout_ms=200,
        )  # fmt: skip
        self.group = Group(self.worker)

    async def write(self, decide: Callable[[Any], list[Entry]]) -> None:
        await self.configs.write(lambda state: (decide(state), None))
        self.configs._moved.set()
        self.configs._moved = asyncio.Event()

    async def create(self, name: str = "w", target: Target = Target.STARTED) -> None:
        await self.write(lambda state: operations.create(state, name, {**CONFIG, "name": name}, target))

    async def until(self, *events: str) -> None:
        """The runner was told just that."""
        async with asyncio.timeout(20):
            while self.runner.events != list(events):
                await asyncio.sleep(0.01)

    async def state(self, wanted: str, name: str = "w") -> None:
        async with asyncio.timeout(20):
            while (found := self.statuses.state.connector(name)) is None or found.state.value != wanted:
                await asyncio.sleep(0.01)


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    epochs = iter(range(100))

    async def fence(_cluster: Cluster, _transactional_id: str) -> NewProducer:
        return NewProducer(1, next(epochs))

    monkeypatch.setattr(state_topic, "fence", fence)
    made = Bench()
    made.worker.start()
    yield made
    made.runner.hold.set()
    await made.worker.close()
    await made.configs.close()
    await made.statuses.close()


async def test_it_runs_what_it_is_given(bench: Bench) -> None:
    await bench.create()
    bench.group.rebalance("w")
    await bench.until("start w")
    await bench.state("RUNNING")
    async with asyncio.timeout(20):
        while not bench.statuses.state.tasks("w"):
            await asyncio.sleep(0.01)
    bench.group.rebalance()
    await bench.until("start w", "stop w")


async def test_what_is_taken_away_is_given_up_before_the_next_round(bench: Bench) -> None:
    await bench.create()
    bench.group.rebalance("w")
    await bench.until("start w")
    bench.runner.hold.clear()
    bench.group.rebalance()
    async with asyncio.timeout(20):
        while "w" in bench.worker._assigned:
            await asyncio.sleep(0.01)
    joins = bench.group.joins
    assert bench.worker._owned() == {"w"}, "it says so as long as it runs"
    bench.runner.hold.set()
    await bench.until("start w", "stop w")
    async with asyncio.timeout(20):
        while bench.group.joins == joins:
            await asyncio.sleep(0.01)
    assert bench.worker._owned() == set()


async def test_one_that_does_not_end_holds_up_no_other(bench: Bench) -> None:
    await bench.create("w")
    bench.group.rebalance("w", "v")
    await bench.until("start w")
    bench.runner.hold.clear()
    await bench.write(lambda state: operations.set_target(state, "w", Target.PAUSED))
    await bench.create("v")
    await bench.until("start w", "start v")
    await bench.state("PAUSED")


async def test_another_configuration_is_another_start(bench: Bench) -> None:
    await bench.create()
    bench.group.rebalance("w")
    await bench.until("start w")
    await bench.write(lambda state: operations.put(state, "w", {**CONFIG, "depth": "9"})[0])
    await bench.until("start w", "stop w", "start w")
    await bench.write(lambda state: operations.delete(state, "w"))
    await bench.until("start w", "stop w", "start w", "stop w")
    async with asyncio.timeout(20):
        while bench.statuses.state.connector("w") is not None:
            await asyncio.sleep(0.01)


async def test_who_is_cut_off_gives_all_up_and_comes_back(bench: Bench) -> None:
    await bench.create()
    bench.group.rebalance("w")
    await bench.until("start w")
    bench.group.is_lost = True
    await bench.until("start w", "abandon w")
    bench.group.is_lost = False
    await bench.until("start w", "abandon w", "start w")


async def test_why_it_is_not_in_its_group_is_told_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.create()
    bench.group.refusal = refusal(ErrorCode.INVALID_SESSION_TIMEOUT, "group g")
    bench.group.rebalance()
    async with asyncio.timeout(20):
        while bench.group.refused < 3:
            await asyncio.sleep(0.01)
    told = [each for each in caplog.records if each.message == "the worker is not in its group"]
    assert len(told) == 1
    assert "session timeout for group g" in vars(told[0])["error"]
    bench.group.refusal = None
    bench.group.rebalance("w")
    await bench.until("start w")


async def test_a_class_that_is_not_installed_is_told(bench: Bench) -> None:
    await bench.write(
        lambda state: operations.create(state, "w", {"connector.class": "Nope"}, Target.STARTED)
    )
    bench.group.rebalance("w")
    await bench.state("FAILED")
    assert "Nope" in (bench.statuses.state.connector("w").trace or "")  # type: ignore[union-attr]  # it is there
    assert bench.runner.events == []


async def test_reports_of_a_run_that_is_over_do_not_count(bench: Bench) -> None:
    await bench.create()
    bench.group.rebalance("w")
    await bench.until("start w")
    await bench.state("RUNNING")
    old = bench.runner.reports["w"]
    await bench.write(lambda state: operations.put(state, "w", {**CONFIG, "depth": "9"})[0])
    await bench.until("start w", "stop w", "start w")
    old(Report("w", Condition.FAILED, "of the old one"))
    for _ in range(3):  # what was called from another thread has run by then
        await asyncio.sleep(0)
    assert not bench.worker._running["w"].has_failed
    bench.runner.reports["w"](Report("w", Condition.RUNNING, topics=frozenset({"t"})))
    async with asyncio.timeout(20):
        while bench.statuses.state.topics("w") != ["t"]:
            await asyncio.sleep(0.01)
    assert bench.statuses.state.tasks("w")[0].trace is None


async def test_it_ends_in_order(bench: Bench) -> None:
    await bench.create()
    bench.group.rebalance("w")
    await bench.until("start w")
    await bench.state("RUNNING")
    await bench.worker.close()
    assert bench.runner.events == ["start w", "stop w"]
    assert bench.group.has_left
    await bench.state("UNASSIGNED")


async def test_a_worker_that_can_run_nothing_any_more_says_so(bench: Bench) -> None:
    bench.runner.dead.set()
    with pytest.raises(ClientFailure, match="Spark has ended"):
        await bench.worker.failed()
