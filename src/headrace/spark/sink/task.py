"""A task: takes a transaction, writes its rows, leaves the transaction open and tells whose it is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, RecordsRefused, Refused
from headrace.client.transaction_ends import Identity, end, is_current, take
from headrace.client.transactional_producer import Records, TransactionalProducer
from headrace.client.transactions import describe_transactions
from headrace.core.ids import TopicPartition
from headrace.protocol.batch import HEADER_SIZE
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.records import NewRecord, encode_batch
from headrace.spark.sink.checksum import Checksum, checksum
from headrace.spark.sink.decision import SinkFailure, TopicRefuses, Written
from headrace.spark.sink.encoding import Columns, Gathered, Portion, encode, gathered, lengths_of
from headrace.spark.sink.landing import Aside, Landing, placed
from headrace.spark.sink.loop_thread import LoopThread
from headrace.spark.sink.naming import own_id, task_id
from headrace.spark.sink.partitioning import Turns, choose
from headrace.spark.sink.plan import Placed, Plan, TaskDone
from headrace.spark.sink.rows import columns_of, partitions_of, source_offsets_of, topics_of
from headrace.spark.sink.varints import Integers

_LEAST_CHUNK_BYTES: Final = 2 * 1024 * 1024
_MOST_CHUNK_BYTES: Final = 32 * 1024 * 1024
_BYTES_A_PARTITION: Final = 256 * 1024
_RECORD_OVERHEAD: Final = 24
_OF_THE_TOPIC: Final = frozenset(
    (
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_RECORD,
    )
)
"""Answers to records that will be the same the next time, and that say nothing of other topics."""


class Place(NamedTuple):
    """Which task this is, as Spark says."""

    run_name: str
    query: str
    task: int
    attempt: int
    """Counted from 0 anew where Spark repeats a stage, while the tasks of its first attempt may still run."""
    execution: int
    """Another for everything that Spark ever lets run."""


def write(plan: Plan, place: Place, batches: Iterator[Any], aside: Aside | None = None) -> TaskDone:
    """All of `batches` (Arrow) into one transaction, which is open when this returns. With a column
    `source_offset` it is told where each row landed; `aside` is written in the same transaction."""

    def feed(writer: _Writer) -> None:
        for chunk in _chunks(batches, writer.chunk_bytes):
            writer.write(chunk)

    return _written(plan, place, feed, aside)


def write_portions(
    plan: Plan, place: Place, portions: Iterator[Portion], aside: Aside | None = None
) -> TaskDone:
    """The same for rows that need no sorting."""

    def feed(writer: _Writer) -> None:
        for some in gathered(portions, _LEAST_CHUNK_BYTES):
            writer.write_gathered(some)

    return _written(plan, place, feed, aside)


def _written(plan: Plan, place: Place, feed: Callable[[_Writer], None], aside: Aside | None) -> TaskDone:
    with LoopThread() as loop:
        writer = _Writer(plan, place, loop)
        try:
            feed(writer)
            written, landed = writer.finish(aside)
        except Refused as error:
            writer.give_up()
            raise _refusal(error, plan.options.batch_bytes) from None
        except BaseException:
            writer.give_up()
            raise
        finally:
            writer.close()
    return TaskDone(plan.sink, plan.run, place.run_name, place.query, written, writer.bytes, landed)


def _refusal(error: Refused, batch_bytes: int) -> Exception:
    """What concerns one topic names it: whoever writes several goes on with the others."""
    if not isinstance(error, RecordsRefused) or error.code not in _OF_THE_TOPIC:
        return error
    text = str(error)
    if error.code == ErrorCode.MESSAGE_TOO_LARGE:
        text += (
            f". The sink's batches hold up to {batch_bytes} bytes: raise max.message.bytes of the topic, or "
            'write smaller ones with .option("batch.bytes", N)'
        )
    return TopicRefuses(error.partition.topic, text)


def _chunks(batches: Iterator[Any], size: Any) -> Iterator[Any]:
    """Arrow's batches in larger tables: the more rows, the fuller the batches of each partition."""
    waiting: list[Any] = []
    waiting_bytes = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            waiting_bytes += batch.nbytes
        if waiting_bytes >= size():
            yield pa.Table.from_batches(waiting)
            waiting, waiting_bytes = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


class _Writer:
    def __init__(self, plan: Plan, place: Place, loop: LoopThread) -> None:
        self.bytes = 0
        self._plan = plan
        self._place = place
        self._loop = loop
        self._cluster: Cluster = plan.options.cluster()
        self._producer: TransactionalProducer | None = None
        self._checksum = Checksum()
        self._landing = Landing()
        self._turns: dict[str, Turns] = {}
        self._partitions: dict[str, int] = {}

    def chunk_bytes(self) -> int:
        """Enough that each partition gets a fair batch, but bounded."""
        wanted = _BYTES_A_PARTITION * max(self._partitions.values(), default=0)
        return min(max(wanted, _LEAST_CHUNK_BYTES), _MOST_CHUNK_BYTES)

    def write(self, table: Any) -> None:
        options = self._plan.options
        columns = columns_of(table)
        topics, places = topics_of(table, options.topic)
        producer = self._opened()
        named = partitions_of(table)
        sources = source_offsets_of(table)
        self._count(columns)
        if places is None:
            self._write_topic(producer, topics[0], columns, named, sources)
            return
        for index, topic in enumerate(topics):
            rows = np.flatnonzero(places == index)
            of_rows = [None if each is None else each[rows] for each in (named, sources)]
            self._write_topic(producer, topic, columns.take(rows), *of_rows)

    def write_gathered(self, some: Gathered) -> None:
        for target in some.targets:
            self._check_partition(target.topic, target.partition)
        producer = self._opened()
        self._count(some.columns)
        self._send_all(producer, some.targets, some.columns, some.firsts, some.sources)

    def _count(self, columns: Columns) -> None:
        self._checksum += checksum(columns) if self._plan.checksums else Checksum(len(columns.value))

    def _write_topic(
        self,
        producer: TransactionalProducer,
        topic: str,
        columns: Columns,
        named: Integers | None,
        sources: Integers | None,
    ) -> None:
        chosen = self._chosen(topic, columns, named)
        used, first = chosen[:1], np.zeros(1, np.int64)
        if chosen.min() != chosen.max():
            order = np.argsort(chosen, kind="stable")
            columns = columns.take(order)
            sources = None if sources is None else sources[order]
            used, first = np.unique(chosen[order], return_index=True)
        targets = [TopicPartition(topic, int(index)) for index in used]
        self._send_all(producer, targets, columns, first, sources)

    def _send_all(
        self,
        producer: TransactionalProducer,
        targets: list[TopicPartition],
        columns: Columns,
        first: Integers,
        sources: Integers | None,
    ) -> None:
        """Rows in the order of their targets, and the first row of each."""
        options = self._plan.options
        self._loop.run(producer.add_partitions(targets))
        row = 0
        for group, records in encode(
            columns,
            first,
            batch_bytes=options.batch_bytes,
            compression=options.compression,
            level=options.compression_level,
        ):
            offsets = None if sources is None else sources[row : row + records.records]
            self._send(producer, targets[group], records, offsets)
            row += records.records

    def _send(
        self,
        producer: TransactionalProducer,
        target: TopicPartition,
        records: Records,
        sources: Integers | None = None,
    ) -> None:
        self.bytes += len(records.payload)
        # Batches of a partition are answered one after another, so its runs come in order.
        told = None if sources is None else partial(self._landing.stored, target, sources)
        self._loop.run(producer.send(target, records, told))

    def _chosen(self, topic: str, columns: Columns, named: Integers | None) -> Integers:
        count = self._partition_count(topic)
        if named is not None:
            self._check_partition(topic, int(named.max()))
            if named.min() >= 0:
                return named
        sizes = np.maximum(lengths_of(columns.value), 0) + _RECORD_OVERHEAD
        if columns.key is not None:
            sizes = sizes + np.maximum(lengths_of(columns.key), 0)
        start = self._place.task
        turns = self._turns.setdefault(topic, Turns(start, self._plan.options.batch_bytes))
        chosen = choose(columns.key, sizes, count, turns)
        return chosen if named is None else np.where(named >= 0, named, chosen)

    def _check_partition(self, topic: str, partition: int) -> None:
        count = self._partition_count(topic)
        if partition >= count:
            raise SinkFailure(f"topic {topic} has {count} partitions; a row wants partition {partition}")

    def _partition_count(self, topic: str) -> int:
        if topic not in self._partitions:
            cluster = self._cluster

            async def ask() -> int:
                found = await cluster.retried(lambda: cluster.topic(topic, create=True))
                return len(found.partitions)

            self._partitions[topic] = self._loop.run(ask())
        return self._partitions[topic]

    def _opened(self) -> TransactionalProducer:
        """The transaction is taken with the first row: a task without rows leaves nothing behind."""
        if self._producer is None:
            identity = self._loop.run(_take(self._cluster, self._plan, self._place))
            timeout = self._plan.options.delivery_timeout
            self._producer = TransactionalProducer(self._cluster, identity, delivery_timeout=timeout)
        return self._producer

    def finish(self, aside: Aside | None) -> tuple[Written | None, tuple[Placed, ...]]:
        producer = self._producer
        if producer is None:
            return None, ()
        self._loop.run(producer.flush())
        landed = self._landing.runs()
        if aside is not None:
            for target, record in aside(landed):
                self._send(producer, target, _alone(record))
            self._loop.run(producer.flush())
        # Nobody waits for a task that outlived its batch: it must not leave a transaction in the way.
        self._loop.run(_check_current(self._cluster, self._plan))
        text = self._checksum.text if self._plan.checksums else None
        return Written(producer.identity, self._checksum.rows, text), placed(landed)

    def give_up(self) -> None:
        """Not left to the next run: until then nobody could read past what is there."""
        if self._producer is not None:
            with contextlib.suppress(ClientFailure):
                self._loop.run(_abort(self._cluster, self._producer))

    def close(self) -> None:
        self._loop.run(self._cluster.close())


def _alone(record: NewRecord) -> Records:
    """A batch of one record."""
    payload = bytes(encode_batch([record])[HEADER_SIZE:])
    return Records(payload, 1, record.timestamp, record.timestamp)


async def _take(cluster: Cluster, plan: Plan, place: Place) -> Identity:
    """What is open under the task's name stays: it is of a task of the same number in an earlier attempt of
    the stage, and the driver may have accepted it already.

    A task that was left behind, on an executor that had been given up, must not begin now: a later batch uses
    the same names, and what it left open would be in everybody's way.

    Nothing makes the questions and the taking one step, but no time passes between them: of two tasks that
    begin at once, one shuts the other out before it has written anything."""
    name = task_id(plan.sink, place.run_name, plan.run.slot, place.task, place.attempt)
    if await _is_open(cluster, name):
        name = own_id(name, place.execution)
    await _check_current(cluster, plan)
    return await take(cluster, name, plan.patience)


async def _is_open(cluster: Cluster, name: str) -> bool:
    found = (await describe_transactions(cluster, [name]))[name]
    if not isinstance(found, Refused):
        return found.state == "Ongoing"
    if found.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        raise found
    return False


async def _check_current(cluster: Cluster, plan: Plan) -> None:
    if not await is_current(cluster, plan.run.decider):
        raise SinkFailure(f"this task belongs to a batch of sink {plan.sink} that is over: it writes nothing")


async def _abort(cluster: Cluster, producer: TransactionalProducer) -> None:
    identity: Identity = producer.identity
    await producer.stop()
    if producer.partitions:
        await end(cluster, identity, commit=False)
