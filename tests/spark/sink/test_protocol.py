"""The sink's protocol without Spark: the driver's and the tasks' parts, called as Spark calls them, with a
death at every step in between. A real broker of either kind is on the other side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from headrace.client.transaction_ends import Patience, end, take
from headrace.spark.sink import decisions, driver
from headrace.spark.sink.decision import Decision, SinkFailure
from headrace.spark.sink.options import Options, parse_options
from headrace.spark.sink.plan import Plan, TaskDone
from headrace.spark.sink.task import Place, write
from tests.broker_process import BrokerProcess
from tests.spark.sink.reading import create, read


class Query(NamedTuple):
    """A query as the sink sees it: the same rows for the same batch, whoever asks."""

    options: Options
    name: str = "query-1"
    run: str = "run-1"
    tasks: int = 2

    def rows(self, batch: int, task: int) -> list[int]:
        return [number for number in range(batch * 100, batch * 100 + 100) if number % self.tasks == task]

    def plan(self) -> Plan:
        return asyncio.run(driver.plan(self.options))

    def task(self, plan: Plan, batch: int, task: int, attempt: int = 0) -> TaskDone:
        rows = self.rows(batch, task)
        return write(plan, Place(self.run, self.name, task, attempt), _arrow(rows))

    def write(self, plan: Plan, batch: int) -> list[TaskDone | None]:
        # Which task holds which rows is another thing each time.
        return [self.task(plan, batch, task) for task in reversed(range(self.tasks))]

    def commit(self, done: list[TaskDone | None], batch: int) -> None:
        asyncio.run(driver.commit(self.options, done, batch))

    def abort(self, done: list[TaskDone | None]) -> None:
        asyncio.run(driver.abort(self.options, done))

    def whole(self, batch: int) -> None:
        plan = self.plan()
        self.commit(self.write(plan, batch), batch)


def _arrow(rows: list[int]) -> Iterator[Any]:
    for at in range(0, len(rows), 20):
        some = [b"%d" % number for number in rows[at : at + 20]]
        yield pa.record_batch({"key": pa.array(some, pa.binary()), "value": pa.array(some, pa.binary())})


@pytest.fixture
def topic(broker: BrokerProcess, new_topic: Callable[[], str]) -> str:
    name = new_topic()
    create(broker.bootstrap, name, 3)
    return name


@pytest.fixture
def query(broker: BrokerProcess, topic: str) -> Query:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "sink.id": f"sink-{topic}"}
    return Query(parse_options(given, streaming=True))


@pytest.fixture
def check(broker: BrokerProcess, topic: str) -> Callable[[int], None]:
    def check(batches: int) -> None:
        found = sorted(int(each.value or b"") for each in read(broker.bootstrap, topic))
        assert found == list(range(batches * 100))

    return check


def test_batches_arrive_once(query: Query, check: Callable[[int], None]) -> None:
    for batch in range(3):
        query.whole(batch)
    check(3)


def test_a_replay_is_a_no_op(query: Query, check: Callable[[int], None]) -> None:
    query.whole(0)
    query.whole(0)
    query._replace(run="run-2").whole(0)
    query.whole(1)
    check(2)


def test_a_replay_with_other_tasks_is_a_no_op(query: Query, check: Callable[[int], None]) -> None:
    query.whole(0)
    query._replace(run="run-2", tasks=5).whole(0)
    query._replace(run="run-2", tasks=5).whole(1)
    check(2)


def test_a_driver_that_dies_before_the_tasks_end_leaves_nothing(
    query: Query, check: Callable[[int], None]
) -> None:
    plan = query.plan()
    query.task(plan, 0, 0)
    query._replace(run="run-2").whole(0)
    check(1)


def test_a_driver_that_dies_after_the_tasks_and_before_the_decision(
    query: Query, check: Callable[[int], None]
) -> None:
    query.write(query.plan(), 0)
    query._replace(run="run-2").whole(0)
    check(1)


def _decide_only(query: Query, plan: Plan, done: list[TaskDone | None], batch: int) -> Decision:
    """What a driver does that dies just behind the commit point."""
    written = tuple(each.written for each in done if each is not None and each.written is not None)
    decision = Decision(plan.run.number, query.name, batch, plan.run.decider, written, 1)

    async def decide() -> None:
        async with query.options.cluster() as cluster:
            await decisions.append_decision(cluster, query.options.decisions, plan.sink, decision)

    asyncio.run(decide())
    return decision


def test_a_driver_that_dies_behind_the_decision_has_committed(
    query: Query, check: Callable[[int], None]
) -> None:
    plan = query.plan()
    _decide_only(query, plan, query.write(plan, 0), 0)
    later = query._replace(run="run-2")
    later.plan()
    check(1)
    later.whole(0)
    later.whole(1)
    check(2)


def test_a_driver_that_dies_between_two_ends(query: Query, check: Callable[[int], None]) -> None:
    plan = query.plan()
    decision = _decide_only(query, plan, query.write(plan, 0), 0)
    asyncio.run(_end(query, decision.transactions[0].identity))
    later = query._replace(run="run-2")
    later.whole(0)
    check(1)


async def _end(query: Query, identity: Any) -> None:
    async with query.options.cluster() as cluster:
        await end(cluster, identity, commit=True)


def test_abort_after_a_commit_that_failed_behind_the_decision_keeps_it(
    query: Query, check: Callable[[int], None]
) -> None:
    plan = query.plan()
    done = query.write(plan, 0)
    _decide_only(query, plan, done, 0)
    query.abort(done)
    check(1)


def test_abort_before_the_decision_leaves_nothing(query: Query, check: Callable[[int], None]) -> None:
    done = query.write(query.plan(), 0)
    query.abort([done[0], None])
    check(0)
    query.whole(0)
    check(1)


def test_the_older_of_two_drivers_cannot_decide(query: Query, check: Callable[[int], None]) -> None:
    older, newer = query, query._replace(run="run-2")
    done = older.write(older.plan(), 0)
    plan = newer.plan()
    with pytest.raises(SinkFailure, match=r"another driver|before the batch was decided"):
        older.commit(done, 0)
    older.abort(done)
    newer.commit(newer.write(plan, 0), 0)
    check(1)


def test_the_older_driver_is_stopped_even_while_its_transactions_are_open(
    query: Query, check: Callable[[int], None]
) -> None:
    """The fence is the decider's epoch, and not only the sweep."""
    done = query.write(query.plan(), 0)

    async def take_over() -> None:
        async with query.options.cluster() as cluster:
            first = done[0]
            assert first is not None
            await take(cluster, first.run.decider.transactional_id, Patience(60_000))

    asyncio.run(take_over())
    with pytest.raises(SinkFailure, match="another driver"):
        query.commit(done, 0)
    query.abort(done)
    check(0)


def test_attempts_that_failed_or_came_second_leave_nothing(
    query: Query, check: Callable[[int], None]
) -> None:
    plan = query.plan()
    first = query.task(plan, 0, 0, attempt=0)
    assert first.written is not None
    query.task(plan, 0, 0, attempt=1)  # a speculative copy whose message came second
    query.commit([first, query.task(plan, 0, 1)], 0)
    check(1)


def test_a_zombie_of_an_earlier_run_does_not_harm(query: Query, check: Callable[[int], None]) -> None:
    old = query.plan()
    later = query._replace(run="run-2")
    plan = later.plan()
    done = later.write(plan, 0)
    query.task(old, 0, 0)  # wakes up and writes its rows, and nobody waits for its message
    later.commit(done, 0)
    later.whole(1)  # its transaction hides what is behind it until the next batch begins
    check(2)


def test_what_was_lost_is_written_once_more_and_nothing_else(
    query: Query, check: Callable[[int], None]
) -> None:
    """As after a time-out between the decision and the end."""
    query = query._replace(options=query.options._replace(checksum=True))
    plan = query.plan()
    decision = _decide_only(query, plan, query.write(plan, 0), 0)
    asyncio.run(_lose(query, decision, 1))
    query._replace(run="run-2").whole(0)
    check(1)
    query._replace(run="run-2").whole(1)
    check(2)


def test_what_was_lost_whole_may_be_cut_anew(query: Query, check: Callable[[int], None]) -> None:
    plan = query.plan()
    decision = _decide_only(query, plan, query.write(plan, 0), 0)
    asyncio.run(_lose(query, decision, 0, 1))
    query._replace(run="run-2", tasks=3).whole(0)
    check(1)


def test_what_was_lost_and_cannot_be_told_stops_with_a_reason(query: Query) -> None:
    query = query._replace(options=query.options._replace(checksum=True))
    plan = query.plan()
    decision = _decide_only(query, plan, query.write(plan, 0), 0)
    asyncio.run(_lose(query, decision, 1))
    with pytest.raises(SinkFailure, match="do not hold the same sets of rows"):
        query._replace(run="run-2", tasks=3).whole(0)


async def _lose(query: Query, decision: Decision, *which: int) -> None:
    """An abort with the identity of the task: to a later commit it looks as a time-out does."""
    async with query.options.cluster() as cluster:
        for index in which:
            await end(cluster, decision.transactions[index].identity, commit=False)


def test_an_older_checkpoint_is_refused(query: Query) -> None:
    query.whole(0)
    query.whole(1)
    with pytest.raises(SinkFailure, match="older"):
        query.whole(0)


def test_a_job_with_an_id_is_done_once_and_one_without_every_time(
    query: Query, check: Callable[[int], None]
) -> None:
    named = query._replace(options=query.options._replace(job="load-1"), name="job load-1")
    named.whole(0)
    named.whole(0)
    check(1)
    single = query._replace(options=query.options._replace(sink=None), name="job x", run="x")
    single.whole(1)
    check(2)
