"""A query as the sink sees it, without Spark: the same rows for the same batch, whoever asks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import pyarrow as pa

from headrace.client.transaction_ends import Identity, end
from headrace.spark.sink import decisions, driver
from headrace.spark.sink.decision import Decision
from headrace.spark.sink.options import Options, parse_options
from headrace.spark.sink.plan import Plan, TaskDone
from headrace.spark.sink.task import Place, write

_EXECUTIONS = count()


class Query(NamedTuple):
    options: Options
    name: str = "query-1"
    run: str = "run-1"
    tasks: int = 2

    @classmethod
    def of(cls, bootstrap: str, topic: str) -> Query:
        given = {"kafka.bootstrap.servers": bootstrap, "topic": topic, "sink.id": f"sink-{topic}"}
        return cls(parse_options(given, streaming=True))

    def rows(self, batch: int, task: int) -> list[int]:
        return [number for number in range(batch * 100, batch * 100 + 100) if number % self.tasks == task]

    def plan(self) -> Plan:
        return asyncio.run(driver.plan(self.options))

    def task(self, plan: Plan, batch: int, task: int, attempt: int = 0) -> TaskDone:
        rows = self.rows(batch, task)
        return write(plan, Place(self.run, self.name, task, attempt, next(_EXECUTIONS)), _arrow(rows))

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

    def decide_only(self, plan: Plan, done: list[TaskDone | None], batch: int) -> Decision:
        """What a driver does that dies just behind the commit point."""
        written = tuple(each.written for each in done if each is not None and each.written is not None)
        decision = Decision(plan.run.number, self.name, batch, plan.run.decider, written, 1)

        async def decide() -> None:
            async with self.options.cluster() as cluster:
                await decisions.append_decision(cluster, self.options.decisions, plan.sink, decision)

        asyncio.run(decide())
        return decision

    def last_decision(self, sink: str) -> Decision:
        async def read() -> Decision | None:
            async with self.options.cluster() as cluster:
                return (await decisions.read_state(cluster, self.options.decisions, sink)).decision

        found = asyncio.run(read())
        assert found is not None
        return found

    def end(self, identity: Identity, *, commit: bool) -> None:
        async def end_it() -> None:
            async with self.options.cluster() as cluster:
                await end(cluster, identity, commit=commit)

        asyncio.run(end_it())


def _arrow(rows: list[int]) -> Iterator[Any]:
    for at in range(0, len(rows), 20):
        some = [b"%d" % number for number in rows[at : at + 20]]
        yield pa.record_batch({"key": pa.array(some, pa.binary()), "value": pa.array(some, pa.binary())})
