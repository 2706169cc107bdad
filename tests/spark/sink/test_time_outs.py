"""How long a cluster leaves a transaction open: for ever, where it grants that, else as long as it says.

Everybody waits for the same time, and once: whatever is to be left alone is begun before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from headrace.client.transaction_ends import Fate, fates
from headrace.spark.sink.decision import Decision, SinkFailure
from headrace.spark.sink.plan import Plan, TaskDone
from tests.both_brokers import TARGETS
from tests.broker_process import BrokerProcess, HeadraceProcess
from tests.spark.sink.queries import Query
from tests.spark.sink.reading import create, read

#: What `_begin` does must come before it, also on a slow machine.
_LONGEST_MS = 20_000
_IMPATIENT = {
    "transaction.max.timeout.ms": str(_LONGEST_MS),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
_TWO_PHASES = {**_IMPATIENT, "transaction.two.phase.commit.enable": "true"}
#: Longer than any transaction may take.
_TOO_LONG_SECONDS = _LONGEST_MS / 1000 + 3


class Left(NamedTuple):
    """A batch whose driver has gone no further for too long a time."""

    broker: BrokerProcess
    topic: str
    query: Query
    plan: Plan
    done: list[TaskDone | None]
    decision: Decision | None = None

    @property
    def values(self) -> list[int]:
        return sorted(int(each.value or b"") for each in read(self.broker.bootstrap, self.topic))

    @property
    def fates(self) -> list[Fate]:
        async def ask() -> list[Fate]:
            assert self.decision is not None
            async with self.query.options.cluster() as cluster:
                return await fates(cluster, [each.identity for each in self.decision.transactions])

        return asyncio.run(ask())

    def await_fates(self, *expected: Fate) -> None:
        deadline = time.monotonic() + 60
        while self.fates != list(expected):
            assert time.monotonic() < deadline
            time.sleep(0.5)


def _begin(broker: BrokerProcess, topic: str, *, decide: bool = True, commit_first: bool = False) -> Left:
    create(broker.bootstrap, topic, 2)
    query = Query.of(broker.bootstrap, topic)
    plan = query.plan()
    done = query.write(plan, 0)
    if not decide:
        return Left(broker, topic, query, plan, done)
    decision = query.decide_only(plan, done, 0)
    if commit_first:
        query.end(decision.transactions[0].identity, commit=True)
    return Left(broker, topic, query, plan, done, decision)


class Waited(NamedTuple):
    decided: Left
    half_committed: Left
    undecided: Left


@pytest.fixture(scope="module")
def waited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Waited | Left]]:
    """By the name of the broker. All of them run at once."""
    with contextlib.ExitStack() as running:
        found: dict[str, Waited | Left] = {}
        for name, kind in TARGETS.items():
            broker = running.enter_context(kind(tmp_path_factory.mktemp(name), _IMPATIENT))
            found[name] = Waited(
                decided=_begin(broker, "decided"),
                half_committed=_begin(broker, "half-committed", commit_first=True),
                undecided=_begin(broker, "undecided", decide=False),
            )
        patient = running.enter_context(HeadraceProcess(tmp_path_factory.mktemp("patient"), _TWO_PHASES))
        found["patient"] = _begin(patient, "granted")
        time.sleep(_TOO_LONG_SECONDS)
        yield found


@pytest.fixture(params=list(TARGETS))
def impatient(request: pytest.FixtureRequest, waited: dict[str, Waited | Left]) -> Waited:
    chosen = waited[request.param]
    assert isinstance(chosen, Waited)
    return chosen


def test_a_decided_batch_that_timed_out_is_written_again(impatient: Waited) -> None:
    left = impatient.decided
    assert left.plan.patience == (_LONGEST_MS, False)
    assert left.plan.checksums
    left.await_fates(Fate.ABORTED, Fate.ABORTED)
    left.query._replace(run="run-2").whole(0)
    left.query._replace(run="run-2").whole(1)
    assert left.values == list(range(200))


def test_half_of_a_decided_batch_that_timed_out_is_written_again(impatient: Waited) -> None:
    left = impatient.half_committed
    left.await_fates(Fate.COMMITTED, Fate.ABORTED)
    left.query._replace(run="run-2").whole(0)
    assert left.values == list(range(100))


def test_a_batch_that_took_too_long_is_not_decided(impatient: Waited) -> None:
    left = impatient.undecided
    with pytest.raises(SinkFailure, match=r"transaction\.max\.timeout\.ms"):
        left.query.commit(left.done, 0)
    left.query.abort(left.done)
    assert left.values == []


def test_where_two_phases_are_granted_nothing_times_out(waited: dict[str, Waited | Left]) -> None:
    left = waited["patient"]
    assert isinstance(left, Left)
    assert left.plan.patience.for_ever
    assert not left.plan.checksums
    assert left.fates == [Fate.OPEN, Fate.OPEN]
    left.query._replace(run="run-2").whole(0)
    assert left.values == list(range(100))
