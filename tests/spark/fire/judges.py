"""What came of a round. A judge reads both sides anew, by ways that are not the job's, and counts."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition
from pyspark.sql import DataFrame, functions

_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.5
#: Of the first 60 bits of an MD5: Spark and Python make the same whole number of them.
_HEXADECIMALS: Final = 15


class Verdict(NamedTuple):
    records: int
    missing: int = 0
    doubled: int = 0
    alien: int = 0
    """There, but in no input."""
    differing: str = ""
    """Anything else that is not equal."""

    @property
    def equal(self) -> bool:
        return self.records > 0 and not (self.missing or self.doubled or self.alien or self.differing)


class Read(NamedTuple):
    partition: int
    offset: int
    value: bytes


def committed(bootstrap: str, topic: str) -> Iterator[Read]:
    """Every record that a reader of committed ones sees, up to the end as it is now."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        left = set(consumer.list_topics(topic, _SECONDS).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, index, 0) for index in left])
        deadline = time.monotonic() + _SECONDS
        while left:
            # It waits for the whole time unless it has as many as it may.
            some = consumer.consume(10_000, _LOOK_SECONDS)
            if some:
                deadline = time.monotonic() + _SECONDS
            assert time.monotonic() < deadline, f"{topic}: the end of {sorted(left)} does not come"
            for message in some:
                error = message.error()
                if error is None:
                    yield Read(message.partition() or 0, message.offset() or 0, message.value() or b"")
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    left.discard(message.partition() or 0)
    finally:
        consumer.close()


def output_equals_input(bootstrap: str, source: str, target: str) -> Verdict:
    """Each value of the one topic once in the other."""
    given = Counter(record.value for record in committed(bootstrap, source))
    found = Counter(record.value for record in committed(bootstrap, target))
    return Verdict(
        records=given.total(),
        missing=(given - found).total(),
        doubled=sum(count - given[value] for value, count in found.items() if 0 < given[value] < count),
        alien=sum(count for value, count in found.items() if value not in given),
    )


Translate = Callable[[int, int], int | None]
"""Partition and offset of the source, into the offset of the target."""


def translations_equal_logs(bootstrap: str, source: str, target: str, translate: Translate) -> str:
    """What is wrong: both logs must have the same values in the same order in each partition, and each offset
    of the one must lead to the record that a reader would get there next."""
    here, there = _by_partition(bootstrap, source), _by_partition(bootstrap, target)
    wrong = []
    for index, records in here.items():
        copies = there.get(index, [])
        if [each.value for each in records] != [each.value for each in copies]:
            wrong.append(f"partition {index} is not in order")
            continue
        position = 0
        for record, copy in zip(records, copies, strict=True):
            for offset in range(position, record.offset + 1):
                if (found := translate(index, offset)) != copy.offset:
                    wrong.append(f"partition {index}: {offset} is at {copy.offset}, not {found}")
            position = record.offset + 1
    return "; ".join(wrong[:5])


def _by_partition(bootstrap: str, topic: str) -> dict[int, list[Read]]:
    found: dict[int, list[Read]] = {}
    for record in committed(bootstrap, topic):
        found.setdefault(record.partition, []).append(record)
    return found


class Partition(NamedTuple):
    rows: int
    distinct: int
    first: int
    last: int
    checksum: int


def table_equals_log(table: DataFrame, bootstrap: str, topic: str) -> Verdict:
    """Every offset of the log once in the table, with its own value."""
    log = _log_partitions(bootstrap, topic)
    rows = _table_partitions(table)
    count = sum(partition.rows for partition in log.values())
    missing = sum(max(0, log[index].rows - rows[index].distinct) for index in log if index in rows)
    missing += sum(log[index].rows for index in log if index not in rows)
    doubled = sum(partition.rows - partition.distinct for partition in rows.values())
    alien = sum(partition.rows for index, partition in rows.items() if index not in log)
    differing = "" if rows == log else _difference(rows, log)
    return Verdict(count, missing, doubled, alien, differing)


def batches_out_of_order(rows: DataFrame) -> str:
    """Of a table whose column `batch` says which batch of a query wrote a row."""
    ranges = rows.groupBy("partition", "batch").agg(
        functions.min("offset").alias("first"), functions.max("offset").alias("last")
    )
    wrong: list[str] = []
    last: dict[int, int] = {}
    for row in ranges.orderBy("batch").collect():
        if row["first"] <= last.get(row["partition"], -1):
            wrong.append(f"partition {row['partition']}: batch {row['batch']} begins at {row['first']}")
        last[row["partition"]] = row["last"]
    return "; ".join(wrong[:5])


def _difference(rows: dict[int, Partition], log: dict[int, Partition]) -> str:
    return "; ".join(
        f"partition {index}: table {rows.get(index)}, log {log.get(index)}"
        for index in sorted(rows.keys() | log.keys())
        if rows.get(index) != log.get(index)
    )


def checksum(record: Read) -> int:
    identity = f"{record.partition}|{record.offset}|".encode()
    return int(hashlib.md5(identity + record.value).hexdigest()[:_HEXADECIMALS], 16)


def _log_partitions(bootstrap: str, topic: str) -> dict[int, Partition]:
    offsets: dict[int, list[int]] = {}
    sums: Counter[int] = Counter()
    for record in committed(bootstrap, topic):
        offsets.setdefault(record.partition, []).append(record.offset)
        sums[record.partition] += checksum(record)
    return {
        index: Partition(len(seen), len(set(seen)), min(seen), max(seen), sums[index])
        for index, seen in offsets.items()
    }


def _table_partitions(table: DataFrame) -> dict[int, Partition]:
    whole = "concat(cast(concat(partition, '|', offset, '|') as binary), value)"
    number = f"cast(conv(substr(md5({whole}), 1, {_HEXADECIMALS}), 16, 10) as decimal(20, 0))"
    rows = table.groupBy("partition").agg(
        functions.count("*").alias("rows"),
        functions.count_distinct("offset").alias("distinct"),
        functions.min("offset").alias("first"),
        functions.max("offset").alias("last"),
        functions.sum(functions.expr(number)).alias("checksum"),
    )
    return {
        row["partition"]: Partition(
            row["rows"], row["distinct"], row["first"], row["last"], int(row["checksum"])
        )
        for row in rows.collect()
    }
