"""A job of our own in a worker's hands: its status, its turns and its end. Without Spark."""

from __future__ import annotations

import queue
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from headrace.client import state_topic
from headrace.client.cluster import Cluster
from headrace.client.transactions import NewProducer
from headrace.connect.api import ConnectorFailure, Job, Position, Turns
from headrace.connect.plugins import described
from headrace.connect.runner import Condition, Report, Run
from headrace.connect.settings import Kind, Setting, Settings
from headrace.spark.connect.context import Context
from headrace.spark.connect.job_loop import JobLoop
from headrace.spark.connect.runner import loop_of
from headrace.spark.kafka_properties import KafkaProperties
from tests.unit.connect.memory import Interface

SECONDS = 60


class Pump(Job):
    """Fails once; then something of it stands still, and then nothing does."""

    settings: ClassVar[Settings] = Settings(Setting("pin", Kind.PASSWORD, None))
    fixed: ClassVar[str] = "a pump stays where it is"
    tried: ClassVar[int] = 0

    def work(self, turns: Turns) -> None:
        topics = frozenset({"water"})
        Pump.tried += 1
        turns.begun(topics)
        if Pump.tried == 1:
            raise ConnectorFailure("the valve 1234567 is shut")
        assert turns.turn(lambda: "in its turn") == "in its turn"
        turns.alive(topics, "one stands still, and its pin is 1234567")
        turns.alive(topics, "one stands still, and its pin is 1234567")
        turns.alive(topics)
        turns.ending.wait(SECONDS)

    def position(self) -> Position:
        return Position().moved({"well": 1}, {"litres": 3})


def _context(pool: ThreadPoolExecutor) -> Context:
    def job(_tag: str, work: Callable[[], Any]) -> Future[Any]:
        return pool.submit(work)

    kafka = KafkaProperties({"bootstrap.servers": "127.0.0.1:9"})
    return cast(Context, SimpleNamespace(kafka=kafka, spark=None, job=job, cancel=lambda _tag: None))


def test_it_says_what_fails_and_what_stands_still_and_ends_when_it_is_told() -> None:
    Pump.tried = 0
    said: queue.Queue[Report] = queue.Queue()
    ended: queue.Queue[bool] = queue.Queue()
    properties = {"name": "p", "connector.class": "Pump", "pin": "1234567", "errors.retry.delay.max.ms": "1"}
    with ThreadPoolExecutor(1) as pool:
        loop = loop_of(Pump)(Run("p", described(Pump), properties), said.put, _context(pool))
        assert isinstance(loop, JobLoop)
        loop.start()
        reports = [said.get(timeout=SECONDS) for _ in range(4)]
        loop.end(lambda: ended.put(True))
        assert ended.get(timeout=SECONDS)
    conditions = [each.condition for each in reports]
    assert conditions == [Condition.RUNNING, Condition.RETRYING, Condition.RUNNING, Condition.RUNNING]
    assert reports[0].topics == {"water"}
    assert "the valve [hidden] is shut" in (reports[1].trace or "")
    assert [each.trace for each in reports[2:]] == ["one stands still, and its pin is [hidden]", None]
    assert said.empty(), "what has been said is not said again"


@pytest.fixture
async def rest(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Interface]:
    async def fence(_cluster: Cluster, _transactional_id: str) -> NewProducer:
        return NewProducer(1, 1)

    monkeypatch.setattr(state_topic, "fence", fence)
    made = Interface((Pump,))
    yield made
    await made.close()


async def test_its_position_is_shown_and_cannot_be_moved(rest: Interface) -> None:
    made = await rest.ask("PUT", "/connectors/p/config", {"connector.class": "Pump"})
    assert (made.status, made.document["type"]) == (201, "source")
    rest.runner.positions["p"] = Position().moved({"well": 1}, {"litres": 3})
    offsets = {"offsets": [{"partition": {"well": 1}, "offset": {"litres": 3}}]}
    assert (await rest.ask("GET", "/connectors/p/offsets")).document == offsets
    for refused in (
        await rest.ask("PATCH", "/connectors/p/offsets", offsets),
        await rest.ask("DELETE", "/connectors/p/offsets"),
    ):
        assert (refused.status, refused.document["message"]) == (400, "a pump stays where it is")
