"""How long a cluster leaves a transaction open: for ever, where it grants that, else as long as it says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

from headrace.client.transaction_ends import Fate, fates
from headrace.spark.sink.decision import Decision, SinkFailure
from tests.both_brokers import TARGETS
from tests.broker_process import BrokerProcess, HeadraceProcess
from tests.spark.sink.queries import Query
from tests.spark.sink.reading import create, read

_IMPATIENT = {
    "transaction.max.timeout.ms": "10000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


@pytest.fixture(scope="module", params=["headrace", "kafka"])
def impatient(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    kind = TARGETS[request.param]
    with kind(tmp_path_factory.mktemp("impatient"), _IMPATIENT) as process:
        yield process


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    granted = {**_IMPATIENT, "transaction.two.phase.commit.enable": "true"}
    with HeadraceProcess(tmp_path_factory.mktemp("patient"), granted) as process:
        yield process


def _query(broker: BrokerProcess, topic: str) -> Query:
    create(broker.bootstrap, topic, 2)
    return Query.of(broker.bootstrap, topic)


def _values(broker: BrokerProcess, topic: str) -> list[int]:
    return sorted(int(each.value or b"") for each in read(broker.bootstrap, topic))


def _fates(query: Query, decision: Decision) -> list[Fate]:
    async def ask() -> list[Fate]:
        async with query.options.cluster() as cluster:
            return await fates(cluster, [each.identity for each in decision.transactions])

    return asyncio.run(ask())


def _await_time_out(query: Query, decision: Decision) -> None:
    deadline = time.monotonic() + 60
    while _fates(query, decision) != [Fate.ABORTED] * len(decision.transactions):
        assert time.monotonic() < deadline
        time.sleep(0.5)


def test_a_decided_batch_that_timed_out_is_written_again(
    impatient: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    topic = new_topic()
    query = _query(impatient, topic)
    plan = query.plan()
    assert plan.patience == (10_000, False)
    assert plan.checksums
    decision = query.decide_only(plan, query.write(plan, 0), 0)
    _await_time_out(query, decision)
    query._replace(run="run-2").whole(0)
    query._replace(run="run-2").whole(1)
    assert _values(impatient, topic) == list(range(200))


def test_half_of_a_decided_batch_that_timed_out_is_written_again(
    impatient: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    topic = new_topic()
    query = _query(impatient, topic)
    plan = query.plan()
    decision = query.decide_only(plan, query.write(plan, 0), 0)
    query.end(decision.transactions[0].identity, commit=True)
    deadline = time.monotonic() + 60
    while _fates(query, decision) != [Fate.COMMITTED, Fate.ABORTED]:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    query._replace(run="run-2").whole(0)
    assert _values(impatient, topic) == list(range(100))


def test_a_batch_that_took_too_long_is_not_decided(
    impatient: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    topic = new_topic()
    query = _query(impatient, topic)
    done = query.write(query.plan(), 0)
    time.sleep(13)
    with pytest.raises(SinkFailure, match=r"transaction\.max\.timeout\.ms"):
        query.commit(done, 0)
    query.abort(done)
    assert _values(impatient, topic) == []


def test_where_two_phases_are_granted_nothing_times_out(
    patient: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    topic = new_topic()
    query = _query(patient, topic)
    plan = query.plan()
    assert plan.patience.for_ever
    assert not plan.checksums
    decision = query.decide_only(plan, query.write(plan, 0), 0)
    time.sleep(13)
    assert _fates(query, decision) == [Fate.OPEN, Fate.OPEN]
    query._replace(run="run-2").whole(0)
    assert _values(patient, topic) == list(range(100))
