"""The driver's part: before the tasks, after them, and when they failed.

For `format("headrace")` each of the three (`plan`, `commit`, `abort`) runs in a process of its own, so
nothing is remembered between them but what the topic of decisions says and what the tasks bring along.
`job.py` has one process for all, and calls what they consist of (`begin`, `conclude`, `give_up`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from uuid import uuid4

from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.client.transaction_ends import Fate, Patience, end, fates, longest_patience, take
from headrace.client.transactions import fence, list_transactions
from headrace.protocol.error_codes import ErrorCode
from headrace.spark.sink import decisions
from headrace.spark.sink.decision import (
    Course,
    Decision,
    Run,
    SinkFailure,
    State,
    Written,
    check_open,
    course,
    lost_of,
    note_before,
    replacements,
    survivors,
)
from headrace.spark.sink.naming import decider_id, pattern_of_tasks
from headrace.spark.sink.options import Options
from headrace.spark.sink.plan import Plan, TaskDone

_DECIDING_MS: Final = 60_000
"""A decision takes milliseconds. One that its driver left open must not hold up the topic for long."""
_FENCED: Final = frozenset(
    (
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    )
)
_ENDS_AT_ONCE: Final = 64


class Batch(NamedTuple):
    """What a decision is made about, and by whose right."""

    sink: str
    run: Run
    run_name: str
    query: str
    batch: int
    note: str | None = None


class Begun(NamedTuple):
    plan: Plan
    state: State
    """What was decided before."""
    lost: list[Written]
    """Of the last decision: it timed out before it was committed."""


async def plan(options: Options) -> Plan:
    """Before the tasks: no older driver decides any more, nothing old is open, the last decision holds."""
    async with options.cluster() as cluster:
        return (await begin(cluster, options)).plan


async def begin(cluster: Cluster, options: Options) -> Begun:
    job = uuid4().hex
    sink = options.sink or f"job-{job}"
    await decisions.prepare(cluster, options.decisions)
    patience = await longest_patience(cluster)
    deciding = Patience(min(_DECIDING_MS, patience.timeout_ms))
    decider = await take(cluster, decider_id(sink), deciding)
    state = await decisions.read_state(cluster, options.decisions, sink)
    lost = await _settle(cluster, options, sink, state)
    keep = () if state.decision is None else state.decision.transactions
    await _sweep(cluster, pattern_of_tasks(sink), keep)
    run = Run(decider, state.next_number, deciding.timeout_ms)
    return Begun(Plan(options, sink, run, patience, job), state, lost)


async def commit(options: Options, messages: Iterable[TaskDone | None], batch: int) -> None:
    """After the tasks: decide about the batch, unless that was done before, and carry the decision out."""
    done = [message for message in messages if message is not None]
    written = [message.written for message in done if message.written is not None]
    if not written:
        return
    first = done[0]
    async with options.cluster() as cluster:
        about = Batch(first.sink, first.run, first.run_name, first.query, batch)
        await conclude(cluster, options, about, written)
        if options.sink is None:
            await decisions.forget(cluster, options.decisions, first.sink, _now_ms())


async def conclude(cluster: Cluster, options: Options, about: Batch, written: Sequence[Written]) -> Course:
    """Nothing may be written where only a note is new."""
    sink, run = about.sink, about.run
    state = await decisions.read_state(cluster, options.decisions, sink)
    lost = await _settle(cluster, options, sink, state)
    what = course(state, about.query, about.batch, lost)
    kept: Sequence[Written] = ()
    stays: Sequence[Written] = ()
    if what is not Course.REPLAY:
        kept = written
        if what is Course.REPAIR:
            assert state.decision is not None
            kept, stays = replacements(state.decision, lost, written), survivors(state.decision, lost)
        check_open(kept, await fates(cluster, [each.identity for each in kept]))
        before = note_before(state, what)
        decision = Decision(
            run.number, about.query, about.batch, run.decider, (*stays, *kept), _now_ms(), about.note, before
        )
        await decide(cluster, options, sink, decision)
        await _carry_out(cluster, options, sink, decision)
    await _abort(cluster, [each for each in written if each not in kept])
    await _close(cluster, run)
    # Attempts that failed or came second told nobody of theirs.
    await _sweep(cluster, pattern_of_tasks(sink, about.run_name), kept)
    return what


async def abort(options: Options, messages: Iterable[TaskDone | None]) -> None:
    """When the batch failed, or its commit did: what is decided stays, the rest is aborted."""
    done = [message for message in messages if message is not None]
    if not done:
        return  # nothing is known of this run; what it left open is fenced before the next
    first = done[0]
    written = [message.written for message in done if message.written is not None]
    async with options.cluster() as cluster:
        await give_up(cluster, options, Batch(first.sink, first.run, first.run_name, first.query, 0), written)


async def give_up(cluster: Cluster, options: Options, about: Batch, written: Sequence[Written]) -> None:
    # Before the topic is read: now a decision that was on its way is in it, or never will be.
    await _close(cluster, about.run)
    state = await decisions.read_state(cluster, options.decisions, about.sink)
    decision = state.decision
    if decision is not None and decision.decider == about.run.decider:
        await _settle(cluster, options, about.sink, state)
    kept: Sequence[Written] = () if decision is None else decision.transactions
    await _abort(cluster, [each for each in written if each not in kept])
    await _sweep(cluster, pattern_of_tasks(about.sink, about.run_name), kept)


async def _close(cluster: Cluster, run: Run) -> None:
    """The run is over: a task that is still at it sees that when it is done, and aborts what it wrote. Those
    that were done before are swept.

    It decides nothing any more: a decision that it left open is aborted, and one that is being committed has
    all its markers when this returns. If a later run has begun, that one has waited for them."""
    decider = run.decider
    try:
        await take(cluster, decider.transactional_id, Patience(run.deciding_ms), held=decider)
    except Refused as error:
        if error.code not in _FENCED:  # else a later run has begun, which comes to the same
            raise


async def decide(cluster: Cluster, options: Options, sink: str, decision: Decision) -> None:
    try:
        await decisions.append_decision(cluster, options.decisions, sink, decision)
    except Refused as error:
        if error.code not in _FENCED:
            raise
        raise SinkFailure(
            f"another driver has begun to write as sink {sink} since this batch began: this one stops. If "
            "both are meant to run, give each a sink.id of its own"
        ) from None


async def _carry_out(cluster: Cluster, options: Options, sink: str, decision: Decision) -> None:
    if lost := await _commit_all(cluster, decision):
        rows = sum(each.rows for each in lost)
        raise SinkFailure(
            f"{rows} rows of batch {decision.batch} timed out at the very moment they were decided. Start "
            "the query again: it writes them once more, and nothing else"
        )
    await decisions.append_ended(cluster, options.decisions, sink, decision.number, _now_ms())


async def _settle(cluster: Cluster, options: Options, sink: str, state: State) -> list[Written]:
    """Commit what the last decision names, once more; what of it is lost."""
    decision = state.unended
    if decision is None:
        return []
    lost = await _commit_all(cluster, decision)
    if not lost:
        await decisions.append_ended(cluster, options.decisions, sink, decision.number, _now_ms())
    return lost


async def _commit_all(cluster: Cluster, decision: Decision) -> list[Written]:
    gate = asyncio.Semaphore(_ENDS_AT_ONCE)

    async def commit_one(each: Written) -> Refused | None:
        async with gate:
            try:
                await end(cluster, each.identity, commit=True)
            except Refused as error:
                if error.code not in _FENCED:
                    raise
                return error
        return None

    refused = await asyncio.gather(*(commit_one(each) for each in decision.transactions))
    if not any(refused):
        return []
    found = await fates(cluster, [each.identity for each in decision.transactions])
    for fate, error in zip(found, refused, strict=True):
        if fate is Fate.OPEN and error is not None:
            raise error
    return lost_of(decision, found)


async def _abort(cluster: Cluster, written: Sequence[Written]) -> None:
    async def abort_one(each: Written) -> None:
        try:
            await end(cluster, each.identity, commit=False)
        except Refused as error:
            if error.code not in _FENCED:  # else it has ended already, or a later run saw to it
                raise

    await asyncio.gather(*(abort_one(each) for each in written))


async def _sweep(cluster: Cluster, pattern: str, keep: Sequence[Written]) -> None:
    """Abort every open transaction with such a name, and shut its producer out. Names that a decision holds
    are never taken anew: that would make a commit of it impossible."""
    kept = {each.identity.transactional_id for each in keep}
    for entry in await list_transactions(cluster, states=["Ongoing"], pattern=pattern):
        if entry.transactional_id not in kept:
            await fence(cluster, entry.transactional_id)


def _now_ms() -> int:
    return int(time.time() * 1000)
