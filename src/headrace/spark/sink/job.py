"""Jobs of a sink, one after another, each with a note: how a loop of batches keeps its position in the log.

    with Jobs(parse_options({...}, streaming=False)) as jobs:
        position = jobs.settle().note
        while True:
            frame, position = ...
            jobs.run(frame, job_id, position)

A job is decided as a batch of `format("headrace")` is, and its note is committed by the same record: so the
batch is there with its note, or neither is. Driver and commit are in this process, which starts no others.

Call it from a thread without an event loop. The functions with `async` are for whoever serves requests.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from uuid import uuid4

from pyspark import TaskContext

from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.client.transaction_ends import Identity
from headrace.protocol.error_codes import ErrorCode
from headrace.spark.sink import decisions, driver
from headrace.spark.sink.decision import Decision, SinkFailure, TopicRefuses, Written
from headrace.spark.sink.driver import Batch
from headrace.spark.sink.landing import Aside
from headrace.spark.sink.loop_thread import LoopThread
from headrace.spark.sink.naming import job_of, job_query
from headrace.spark.sink.options import Options
from headrace.spark.sink.plan import Placed, Plan, TaskDone
from headrace.spark.sink.schema import check_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headrace.spark.sink.encoding import Portion

_MESSAGE: Final = "done string"


class Noted(NamedTuple):
    """The last decision of a sink."""

    job: str
    note: str | None
    """None for a decision that was made without one: by `format("headrace")`, or by an older Headrace."""
    number: int
    before: str | None
    """The note of the decision before it."""
    rows: int


class Settled(NamedTuple):
    """What holds when a loop begins: nobody else decides any more, and nothing old is open."""

    last: Noted | None
    lost_rows: int
    """Of the last job: decided, but timed out before they were committed. Where there are any, run that job
    again (the same id, rows and note; they began where `last.before` says) before any other."""

    @property
    def note(self) -> str | None:
        return None if self.last is None else self.last.note


class Done(NamedTuple):
    rows: int
    bytes: int
    placed: tuple[Placed, ...] = ()
    """Where rows landed, if the frame has a column `source_offset`: one for each task and partition."""
    replayed: bool = False
    """The job was decided before, and nothing was done."""


class Shares(NamedTuple):
    """In the place of a frame: what tasks read by themselves, past the way of rows from Spark into Python."""

    spark: SparkSession
    shares: Sequence[Any]
    """One for each task. The same rows have to be shared in the same way if a job is run again."""
    read: Callable[[Any], Iterator[Portion]]
    """Of a share; called in the task."""


class Jobs:
    """One for a sink in a process; a newer one, wherever it is, shuts this one out."""

    def __init__(self, options: Options) -> None:
        if options.sink is None:
            raise SinkFailure("jobs that are remembered need a name: give sink.id")
        self._options = options
        self._sink = options.sink
        self._run_name = uuid4().hex
        """Transactional ids have it: with one for each job the cluster would keep ever more of them."""
        self._known: int | None = None
        """The number of the last decision, as far as this one has seen or made them all."""
        self._loop = LoopThread()
        self._cluster: Cluster = options.cluster()

    def __enter__(self) -> Self:
        self._loop.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._loop.run(self._cluster.close())
        finally:
            self._loop.__exit__(kind, error, trace)

    def last(self) -> Noted | None:
        """Read only: an older run may be about to decide."""
        return self._loop.run(_last(self._cluster, self._options))

    def settle(self) -> Settled:
        """Shut out whoever ran before, and commit once more what was decided last."""
        begun = self._loop.run(driver.begin(self._cluster, self._options))
        self._known = begun.state.next_number - 1
        return Settled(_noted(begun.state.decision), sum(each.rows for each in begun.lost))

    def put_note(self, job_id: str, note: str) -> None:
        """A decision without rows."""
        self._known = None
        self._known = self._loop.run(_put_note(self._cluster, self._options, job_id, note))

    def run(
        self,
        rows: DataFrame | Shares | None,
        job_id: str,
        note: str | None,
        *,
        aside: Aside | None = None,
        check: Callable[[], None] | None = None,
    ) -> Done:
        """Write the rows, and decide. `check` is called between the two: if it raises, nothing is written.

        Where the target refuses the rows of one topic for good, `TopicRefuses` names it, and nothing is
        written. Without rows the note alone is decided. `aside` gives records for a task to write beside its
        rows.

        Since `settle`, nobody else may have decided: who was away for a while would go on from a position
        that another one has left behind. After a failure, settle again.
        """
        if rows is not None and not isinstance(rows, Shares):
            check_schema(rows.schema, self._options.topic, of_job=True)
        begun = self._loop.run(driver.begin(self._cluster, self._options))
        query = job_query(job_id)
        last = begun.state.decision
        if last is not None and last.query == query and not begun.lost:
            return Done(0, 0, replayed=True)
        if last is not None and last.query != query and begun.lost:
            raise SinkFailure(
                f"{sum(each.rows for each in begun.lost)} rows of job {job_of(last.query)} were decided but "
                "timed out before they were committed: run that job again before any other"
            )
        known, self._known = self._known, None
        if known is not None and known != begun.state.next_number - 1:
            raise SinkFailure(
                f"another driver has decided about sink {begun.plan.sink} since this one did: this one "
                "stops. If both are meant to run, give each a sink.id of its own"
            )
        about = Batch(begun.plan.sink, begun.plan.run, self._run_name, query, 0, note)
        written: list[Written] = []
        try:
            done = [] if rows is None else _write(rows, begun.plan, about, aside)
            written += [each.written for each in done if each.written is not None]
            if check is not None:
                check()
            if written or note is not None:
                self._loop.run(driver.conclude(self._cluster, self._options, about, written))
        except BaseException:
            self._loop.run(driver.give_up(self._cluster, self._options, about, written))
            raise
        decided = bool(written) or note is not None
        self._known = begun.plan.run.number if decided else begun.state.next_number - 1
        return Done(
            sum(each.rows for each in written),
            sum(each.bytes for each in done),
            tuple(place for each in done for place in each.placed),
        )


def run_job(
    frame: DataFrame | None,
    options: Options,
    job_id: str,
    note: str | None,
    *,
    aside: Aside | None = None,
    check: Callable[[], None] | None = None,
) -> Done:
    """One job alone. A loop keeps its `Jobs`."""
    with Jobs(options) as jobs:
        return jobs.run(frame, job_id, note, aside=aside, check=check)


async def last_note(options: Options) -> Noted | None:
    """Of the last decision; settles nothing and stops nobody."""
    async with options.cluster() as cluster:
        return await _last(cluster, options)


async def put_note(options: Options, job_id: str, note: str) -> None:
    """Decide a note without rows, and shut out whoever runs jobs of this sink. Whoever puts a note says where
    to go on, so what was lost before it is not asked for any more."""
    async with options.cluster() as cluster:
        await _put_note(cluster, options, job_id, note)


async def forget(options: Options) -> None:
    """As if the sink had never decided anything. What it did decide is committed first."""
    async with options.cluster() as cluster:
        begun = await driver.begin(cluster, options)
        await decisions.forget(cluster, options.decisions, begun.plan.sink, _now_ms())


async def _last(cluster: Cluster, options: Options) -> Noted | None:
    assert options.sink is not None
    try:
        state = await decisions.read_state(cluster, options.decisions, options.sink)
    except Refused as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return None
    return _noted(state.decision)


async def _put_note(cluster: Cluster, options: Options, job_id: str, note: str) -> int:
    begun = await driver.begin(cluster, options)
    last = begun.state.decision
    run = begun.plan.run
    before = None if last is None else last.note
    decision = Decision(run.number, job_query(job_id), 0, run.decider, (), _now_ms(), note, before)
    await driver.decide(cluster, options, begun.plan.sink, decision)
    return run.number


def _noted(decision: Decision | None) -> Noted | None:
    if decision is None:
        return None
    return Noted(job_of(decision.query), decision.note, decision.number, decision.before, decision.rows)


def _now_ms() -> int:
    return int(time.time() * 1000)


# --- tasks ----------------------------------------------------------------------------------------------


def _write(rows: DataFrame | Shares, plan: Plan, about: Batch, aside: Aside | None) -> list[TaskDone]:
    if isinstance(rows, Shares):
        told = rows.spark.sparkContext.parallelize(rows.shares, len(rows.shares))
        messages = told.mapPartitions(_share_task(plan, about, rows.read, aside)).collect()
    else:
        messages = [row["done"] for row in rows.mapInArrow(_task(plan, about, aside), _MESSAGE).collect()]
    return [_decoded(message, about) for message in messages]


def _share_task(
    plan: Plan, about: Batch, read: Callable[[Any], Iterator[Portion]], aside: Aside | None
) -> Callable[[Iterable[Any]], Iterable[str]]:
    def run(shares: Iterable[Any]) -> Iterator[str]:
        from headrace.spark.sink.task import Place, write_portions

        portions = (portion for share in shares for portion in read(share))
        yield _told(lambda: write_portions(plan, Place(*_place(about)), portions, aside))

    return run


def _task(plan: Plan, about: Batch, aside: Aside | None) -> Callable[[Iterable[Any]], Iterable[Any]]:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        from headrace.spark.sink.task import Place, write

        message = _told(lambda: write(plan, Place(*_place(about)), iter(batches), aside))
        yield pa.RecordBatch.from_arrays([pa.array([message], pa.string())], ["done"])

    return run


def _place(about: Batch) -> tuple[str, str, int, int, int]:
    """The fields of `task.Place`."""
    context = TaskContext.get()
    assert context is not None
    return (
        about.run_name,
        about.query,
        context.partitionId(),
        context.attemptNumber(),
        context.taskAttemptId(),
    )


def _told(write: Callable[[], TaskDone]) -> str:
    try:
        return _encoded(write())
    except TopicRefuses as error:
        # Told, not raised: Spark would try the task again, and write its log full of calls.
        return json.dumps({"topic": error.topic, "refused": str(error)})


def _encoded(done: TaskDone) -> str:
    written: Sequence[Any] | None = None
    if done.written is not None:
        written = [*done.written.identity, done.written.rows, done.written.checksum]
    return json.dumps([written, done.bytes, done.placed])


def _decoded(text: str, about: Batch) -> TaskDone:
    document = json.loads(text)
    if isinstance(document, dict):
        raise TopicRefuses(document["topic"], document["refused"])
    written, size, placed = document
    return TaskDone(
        about.sink,
        about.run,
        about.run_name,
        about.query,
        None if written is None else Written(Identity(*written[:3]), *written[3:]),
        size,
        tuple(Placed(*each) for each in placed),
    )
