"""The sink's protocol without Spark: the driver's and the tasks' parts, called as Spark calls them, with a
death at every step in between. A real broker of either kind is on the other side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from headrace.client.errors import Refused
from headrace.client.transaction_ends import Identity, Patience, take
from headrace.spark.sink import decisions, driver
from headrace.spark.sink.decision import Decision, SinkFailure, State
from headrace.spark.sink.task import Place, write
from tests.broker_process import BrokerProcess
from tests.spark.sink.queries import Query
from tests.spark.sink.reading import create, read


class Killed(Exception):
    pass


@pytest.fixture
def topic(broker: BrokerProcess, new_topic: Callable[[], str]) -> str:
    name = new_topic()
    create(broker.bootstrap, name, 3)
    return name


@pytest.fixture
def query(broker: BrokerProcess, topic: str) -> Query:
    return Query.of(broker.bootstrap, topic)


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


def test_a_driver_that_dies_behind_the_decision_has_committed(
    query: Query, check: Callable[[int], None]
) -> None:
    plan = query.plan()
    query.decide_only(plan, query.write(plan, 0), 0)
    later = query._replace(run="run-2")
    later.plan()
    check(1)
    later.whole(0)
    later.whole(1)
    check(2)


def test_a_driver_that_dies_between_two_ends(query: Query, check: Callable[[int], None]) -> None:
    plan = query.plan()
    decision = query.decide_only(plan, query.write(plan, 0), 0)
    query.end(decision.transactions[0].identity, commit=True)
    later = query._replace(run="run-2")
    later.whole(0)
    check(1)


def test_abort_after_a_commit_that_failed_behind_the_decision_keeps_it(
    query: Query, check: Callable[[int], None]
) -> None:
    plan = query.plan()
    done = query.write(plan, 0)
    query.decide_only(plan, done, 0)
    query.abort(done)
    check(1)


def test_abort_waits_for_a_decision_whose_marker_is_on_its_way(
    query: Query, check: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator has stored that it is committed. Only who takes the decider waits for the marker."""
    plan = query.plan()
    done = query.write(plan, 0)
    query.decide_only(plan, done, 0)
    arrived = asyncio.Event()
    read_state = decisions.read_state

    async def take_and_wait(*given: Any, **named: Any) -> Identity:
        arrived.set()
        return await take(*given, **named)

    async def read_what_arrived(*given: Any) -> State:
        return await read_state(*given) if arrived.is_set() else State()

    monkeypatch.setattr(driver, "take", take_and_wait)
    monkeypatch.setattr(decisions, "read_state", read_what_arrived)
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


def test_a_repeated_stage_leaves_alone_what_was_accepted(query: Query, check: Callable[[int], None]) -> None:
    """Spark counts attempts from 0 again, while a task of the stage's first attempt is still at work."""
    plan = query.plan()
    first = query.task(plan, 0, 0, attempt=0)
    again = query.task(plan, 0, 0, attempt=0)
    query.commit([first, query.task(plan, 0, 1)], 0)
    check(1)
    query.whole(1)
    check(2)
    later = query.task(query.plan(), 2, 0)
    names = [done.written.identity.transactional_id for done in (first, again, later) if done.written]
    assert names[1].startswith(names[0] + "/")
    assert names[2] == names[0], "names are used again, so that a long run does not leave ever more of them"


def test_a_zombie_of_an_earlier_run_does_not_harm(query: Query, check: Callable[[int], None]) -> None:
    old = query.plan()
    later = query._replace(run="run-2")
    plan = later.plan()
    done = later.write(plan, 0)
    with pytest.raises(SinkFailure, match="that is over"):
        query.task(old, 0, 0)
    later.commit(done, 0)
    check(1)


def test_a_zombie_that_began_before_it_became_one_is_swept(
    query: Query, check: Callable[[int], None]
) -> None:
    """It took its name in time, and wrote when nobody waited for it any more."""
    plan = query.plan()
    query.task(plan, 0, 0, attempt=7)
    later = query._replace(run="run-2")
    later.whole(0)
    check(1)


def test_a_task_that_outlives_its_batch_takes_back_what_it_wrote(
    query: Query, check: Callable[[int], None], broker: BrokerProcess, topic: str
) -> None:
    plan = query.plan()

    def rows() -> Iterator[Any]:
        yield pa.record_batch({"value": pa.array([b"x" * 10_000] * 300, pa.binary())})
        assert read(broker.bootstrap, topic, committed=False)
        query.commit(query.write(plan, 0), 0)

    with pytest.raises((SinkFailure, Refused)):
        write(plan, Place(query.run, query.name, task=0, attempt=5, execution=1000), rows())
    check(1)


def test_what_was_lost_is_written_once_more_and_nothing_else(
    query: Query, check: Callable[[int], None]
) -> None:
    """As after a time-out between the decision and the end."""
    query = query._replace(options=query.options._replace(checksum=True))
    plan = query.plan()
    decision = query.decide_only(plan, query.write(plan, 0), 0)
    _lose(query, decision, 1)
    query._replace(run="run-2").whole(0)
    check(1)
    query._replace(run="run-2").whole(1)
    check(2)


def test_what_was_lost_twice_is_written_once_more_and_nothing_else(
    query: Query, check: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repair dies behind its decision as well, and its replacement times out."""

    async def die(*_: object) -> None:
        raise Killed

    query = query._replace(options=query.options._replace(checksum=True))
    plan = query.plan()
    decision = query.decide_only(plan, query.write(plan, 0), 0)
    _lose(query, decision, 1)
    with monkeypatch.context() as patched:
        patched.setattr(driver, "_carry_out", die)
        with pytest.raises(Killed):
            query._replace(run="run-2").whole(0)
    repair = query.last_decision(plan.sink)
    assert repair.transactions[0] == decision.transactions[0]
    _lose(query, repair, 1)
    query._replace(run="run-3").whole(0)
    check(1)
    query._replace(run="run-3").whole(1)
    check(2)


def test_what_was_lost_whole_may_be_cut_anew(query: Query, check: Callable[[int], None]) -> None:
    plan = query.plan()
    decision = query.decide_only(plan, query.write(plan, 0), 0)
    _lose(query, decision, 0, 1)
    query._replace(run="run-2", tasks=3).whole(0)
    check(1)


def test_what_was_lost_and_cannot_be_told_stops_with_a_reason(query: Query) -> None:
    query = query._replace(options=query.options._replace(checksum=True))
    plan = query.plan()
    decision = query.decide_only(plan, query.write(plan, 0), 0)
    _lose(query, decision, 1)
    with pytest.raises(SinkFailure, match="do not hold the same sets of rows"):
        query._replace(run="run-2", tasks=3).whole(0)


def _lose(query: Query, decision: Decision, *which: int) -> None:
    """An abort with the identity of the task: to a later commit it looks as a time-out does."""
    for index in which:
        query.end(decision.transactions[index].identity, commit=False)


def test_an_older_checkpoint_is_refused(query: Query) -> None:
    query.whole(0)
    query.whole(1)
    with pytest.raises(SinkFailure, match="older"):
        query.whole(0)


def test_decisions_are_not_kept_where_they_would_be_deleted(
    query: Query, broker: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    name = new_topic()
    create(broker.bootstrap, name, 1)
    with pytest.raises(SinkFailure, match=r"its cleanup\.policy is delete"):
        query._replace(options=query.options._replace(decisions=name)).plan()


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
