"""Moving replicas: in steps, with a throttle that is there before and gone after."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from headrace.client import moves, throttles
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.moves import Progress
from headrace.client.reassignments import Election
from headrace.client.throttles import RATES, REPLICAS, Move
from headrace.core.ids import TopicPartition
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.metadata_response import MetadataResponse
from tests.unit.client.scripted_cluster import ScriptedCluster


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "POLL_SECONDS", 0.001)


def p(index: int) -> TopicPartition:
    return TopicPartition("t", index)


def with_script(script: ScriptedCluster, operation: Callable[[Cluster], Awaitable[None]]) -> None:
    async def work() -> None:
        async with asyncio.timeout(20), script, Cluster(script.address) as cluster:
            await operation(cluster)

    asyncio.run(work())


def three() -> ScriptedCluster:
    return ScriptedCluster({1: None, 2: None, 3: None}, {("t", index): [1, 2] for index in range(3)})


def test_moves_go_some_at_a_time_and_end_with_the_preferred_leader() -> None:
    script = three()
    told: list[Progress] = []

    async def operation(cluster: Cluster) -> None:
        todo = {p(index): Move([1, 2], [3, 2]) for index in range(3)}
        await moves.carry_out(cluster, todo, at_once=2, tell=told.append)

    with_script(script, operation)
    assert script.history == ["move t-0", "move t-1", "elect t-0", "elect t-1", "move t-2", "elect t-2"]
    assert script.partitions == {("t", index): [3, 2] for index in range(3)}
    assert [progress.done for progress in told] == sorted(progress.done for progress in told)
    assert told[-1] == Progress(3, 3, 0, 0, 0)
    assert told[0] == Progress(0, 3, 2, 200, 200)
    assert str(told[0]) == "0 of 3 moved, 2 under way, 100% of 0.0 MB copied"


def test_a_throttle_is_set_before_the_first_move_and_gone_after_the_last() -> None:
    script = three()

    async def operation(cluster: Cluster) -> None:
        await moves.carry_out(cluster, {p(0): Move([1, 2], [3, 2])}, bytes_per_second=1000)

    with_script(script, operation)
    assert script.history == [
        *(f"throttle {name}" for name in ("1", "2", "3", "t")),
        "move t-0",
        "elect t-0",
        *(f"unthrottle {name}" for name in ("t", "1", "2", "3")),
    ]


def test_what_is_throttled_is_who_sends_and_who_is_added() -> None:
    settings = throttles.throttled_replicas(
        {p(0): Move([1, 2], [3, 2]), p(1): Move([1, 2], [2, 3, 4]), p(2): Move([1, 2], [2, 1])}
    )
    assert settings == {"t": {REPLICAS[0]: "0:1,0:2,1:1,1:2", REPLICAS[1]: "0:3,1:3,1:4"}}


def test_a_broker_that_is_down_is_not_throttled() -> None:
    script = three()
    script.fail(1)

    async def operation(cluster: Cluster) -> None:
        await throttles.throttle(cluster, {p(0): Move([1, 2], [3, 2])}, 5)

    with_script(script, operation)
    assert (4, "1") not in script.settings
    assert script.settings[4, "3"] == dict.fromkeys(RATES, "5")


def test_refused_moves_are_said_with_their_reason() -> None:
    async def operation(cluster: Cluster) -> None:
        with pytest.raises(ClientFailure, match=r"1 of 2 moves were refused: partition t-1 cannot have"):
            await moves.carry_out(cluster, {p(0): Move([1, 2], [2, 3]), p(1): Move([1, 2], [9])})

    with_script(three(), operation)


def test_cancelling_ends_the_move_and_its_throttle() -> None:
    script = three()

    async def operation(cluster: Cluster) -> None:
        todo = {p(0): Move([1, 2], [3, 2])}
        await throttles.throttle(cluster, todo, 5)
        await moves.begin(cluster, {p(0): [3, 2]})
        assert await moves.cancel(cluster, [p(0), p(1)]) == [p(0)]
        assert await moves.cancel(cluster, [p(0), p(1)]) == []

    with_script(script, operation)
    assert script.partitions["t", 0] == [1, 2]
    assert not any(script.settings.values())


def test_rates_stay_while_something_else_moves() -> None:
    script = three()
    script.questions = 100

    async def operation(cluster: Cluster) -> None:
        todo = {p(0): Move([1, 2], [3, 2]), p(1): Move([1, 2], [3, 2])}
        await throttles.throttle(cluster, todo, 5)
        await moves.begin(cluster, {partition: move.after for partition, move in todo.items()})
        await moves.cancel(cluster, [p(0)])

    with_script(script, operation)
    assert script.settings[4, "1"] == dict.fromkeys(RATES, "5")


def test_following_waits_and_cleans_up() -> None:
    script = three()

    async def operation(cluster: Cluster) -> None:
        await throttles.throttle(cluster, {p(0): Move([1, 2], [3, 2])}, 5)
        await moves.begin(cluster, {p(0): [3, 2]})
        assert await moves.follow(cluster, [p(0)]) == [p(0)]

    with_script(script, operation)
    assert script.partitions["t", 0] == [3, 2]
    assert not any(script.settings.values())


class SlowToHear(ScriptedCluster):
    """Of its brokers one is behind with what it says of a topic until they were asked `left` times."""

    left = 0

    def _all(self, request: MetadataRequest, version: int) -> MetadataResponse:
        answer = super()._all(request, version)
        for topic in answer.topics:
            self.left -= 1
            if self.left > 0 and self.left % len(self.brokers) == 0:
                topic.partitions[0].leader_epoch = 7
        return answer


async def _cancel(cluster: Cluster) -> None:
    await moves.cancel(cluster, [p(0)])


async def _follow(cluster: Cluster) -> None:
    await moves.follow(cluster, [p(0)])


async def _elect(cluster: Cluster) -> None:
    await moves.elect_leaders(cluster, Election.PREFERRED)


@pytest.mark.parametrize("change", [_cancel, _follow, _elect])
def test_a_change_is_over_when_all_brokers_tell_of_it(change: Callable[[Cluster], Awaitable[None]]) -> None:
    script = SlowToHear({1: None, 2: None, 3: None}, {("t", 0): [1, 2]})
    script.leaders["t", 0] = 2

    async def operation(cluster: Cluster) -> None:
        await moves.begin(cluster, {p(0): [3, 2]})
        script.left = 30
        await change(cluster)

    with_script(script, operation)
    assert script.left <= 0


def test_a_plan_waits_for_all_brokers_once_however_many_its_steps_are() -> None:
    """One that is slow to hear would else hold up each step."""
    script = SlowToHear({1: None, 2: None, 3: None}, {("t", index): [1, 2] for index in range(3)})
    asked: list[str] = []

    async def operation(cluster: Cluster) -> None:
        script.left = 30
        todo = {p(index): Move([1, 2], [3, 2]) for index in range(3)}
        await moves.carry_out(
            cluster, todo, at_once=1, tell=lambda progress: asked.append(f"{progress.done} {script.left}")
        )

    with_script(script, operation)
    assert asked[-1] == "3 30"
    assert script.left <= 0
