"""What a worker says of its connectors: what is new, and nothing twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from headrace.client.state_topic import Pair
from headrace.connect.config_records import ConnectorConfig, Entry, Target, TargetState, TaskConfig, TaskCount
from headrace.connect.runner import Condition, Report
from headrace.connect.status_writer import StatusWriter
from tests.unit.connect.memory import MemoryConfigs, MemoryStatuses


class _Statuses(MemoryStatuses):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[Sequence[Pair]] = []

    async def tell(self, pairs: Sequence[Pair], now_ms: int) -> None:
        if pairs:
            self.told.append(pairs)
        await super().tell(pairs, now_ms)


class Bench:
    def __init__(self) -> None:
        self.configs, self.statuses = MemoryConfigs(), _Statuses()
        self.writer = StatusWriter(self.statuses, self.configs, "w:1", lambda: 3, lambda _: "7")
        self._end = 0
        self.write(ConnectorConfig("c", {}), TaskConfig("c", 0, {}), TaskCount("c", 1))

    def write(self, *entries: Entry) -> None:
        for entry in entries:
            self.configs.state.replay(entry, self._end)
            self._end += 1

    async def states(self, assigned: str = "c") -> list[str]:
        await self.writer.write(assigned.split())
        found = [self.statuses.state.connector("c"), *self.statuses.state.tasks("c").values()]
        return [each.state.value for each in found if each is not None]

    def hear(self, condition: Condition, trace: str | None = None, *topics: str) -> None:
        said = Report("c", condition, trace, topics=frozenset(topics))
        self.writer.used("c", said.topics)
        self.writer.heard(said)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    await made.configs.close()
    await made.statuses.close()


async def test_nothing_is_said_before_something_is_known(bench: Bench) -> None:
    assert await bench.states() == []
    bench.hear(Condition.RUNNING)
    assert await bench.states() == ["RUNNING", "RUNNING"]
    await bench.states()
    assert len(bench.statuses.told) == 1, "it is said once"


async def test_it_is_tasks_that_fail(bench: Bench) -> None:
    bench.hear(Condition.RETRYING, "why")
    assert await bench.states() == ["RUNNING", "FAILED"]
    assert bench.statuses.state.tasks("c")[0].trace == "why"
    bench.hear(Condition.RUNNING)
    assert await bench.states() == ["RUNNING", "RUNNING"]
    assert bench.statuses.state.tasks("c")[0].trace is None


async def test_what_stands_still_is_told_of_tasks_that_run(bench: Bench) -> None:
    bench.hear(Condition.RUNNING, "one topic stands still")
    assert await bench.states() == ["RUNNING", "RUNNING"]
    assert bench.statuses.state.connector("c").trace is None  # type: ignore[union-attr]  # it is there
    assert bench.statuses.state.tasks("c")[0].trace == "one topic stands still"
    bench.hear(Condition.RUNNING)
    await bench.states()
    assert bench.statuses.state.tasks("c")[0].trace is None


async def test_what_has_no_tasks_fails_itself(bench: Bench) -> None:
    bench.write(TaskCount("c", 0))
    bench.hear(Condition.FAILED, "why")
    assert await bench.states() == ["FAILED"]


async def test_paused_has_tasks_and_stopped_has_none(bench: Bench) -> None:
    bench.hear(Condition.RUNNING)
    await bench.states()
    bench.write(TargetState("c", Target.PAUSED))
    assert await bench.states() == ["PAUSED", "PAUSED"]
    bench.write(TargetState("c", Target.STOPPED), TaskCount("c", 0))
    assert await bench.states() == ["STOPPED"]


async def test_what_never_ran_has_a_version(bench: Bench) -> None:
    bench.write(TargetState("c", Target.STOPPED), TaskCount("c", 0))
    assert await bench.states() == ["STOPPED"]
    assert bench.statuses.state.connector("c").version == "7"  # type: ignore[union-attr]  # it is there


async def test_the_last_topics_of_a_run_that_was_stopped_are_told(bench: Bench) -> None:
    bench.hear(Condition.RUNNING)
    await bench.states()
    bench.writer.ended("c")
    bench.writer.used("c", frozenset({"late"}))
    bench.hear(Condition.RUNNING)
    await bench.states()
    assert bench.statuses.state.topics("c") == ["late"]


async def test_a_connector_of_the_same_name_tells_its_topics_again(bench: Bench) -> None:
    bench.hear(Condition.RUNNING, None, "t")
    await bench.states()
    bench.write(ConnectorConfig("c", None))
    await bench.states()
    bench.write(ConnectorConfig("c", {}), TaskConfig("c", 0, {}), TaskCount("c", 1))
    bench.hear(Condition.RUNNING, None, "t")
    await bench.states()
    assert bench.statuses.state.topics("c") == ["t"]


async def test_topics_are_told_when_they_are_first_used(bench: Bench) -> None:
    bench.hear(Condition.RUNNING)
    await bench.states()
    bench.hear(Condition.RUNNING, None, "t")
    await bench.states()
    assert bench.statuses.state.topics("c") == ["t"]
    for key, value in bench.statuses.state.forgotten_topics("c"):
        bench.statuses.state.replay(key, value)
    await bench.states()
    assert bench.statuses.state.topics("c") == [], "what was reset stays so"


async def test_of_a_deleted_one_nothing_is_left(bench: Bench) -> None:
    bench.hear(Condition.RUNNING, None, "t")
    await bench.states()
    bench.write(ConnectorConfig("c", None))
    assert await bench.states() == []
    assert bench.statuses.state.topics("c") == []


async def test_who_ends_says_that_nobody_runs_them(bench: Bench) -> None:
    bench.hear(Condition.RUNNING)
    await bench.states()
    await bench.writer.unassigned(["c"])
    assert bench.statuses.state.connector("c").state.value == "UNASSIGNED"  # type: ignore[union-attr]  # it is there


async def test_what_another_worker_has_now_is_its_to_say(bench: Bench) -> None:
    bench.hear(Condition.RUNNING, None, "t")
    await bench.states()
    told = len(bench.statuses.told)
    await bench.states("")
    assert len(bench.statuses.told) == told
