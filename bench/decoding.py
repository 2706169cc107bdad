"""Decoding beside Spark's functions written by hand: the same rows, made in memory, both sides in turn.

    uv run python -m bench.decoding --rows 2000000

"By hand" is what somebody writes who trusts the data: the parser, and its fields as columns. Ours tells good
from bad besides. All columns are read to the end and thrown away (Spark's `noop` sink).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro, to_avro

from headrace.spark import session
from headrace.spark.decoding.decode import decode
from headrace.spark.decoding.formats import Decoding, Format

_COLUMNS: Final = "id bigint, name string, price double, at timestamp, tags array<string>"
_AVRO: Final = json.dumps(
    {
        "type": "record",
        "name": "Row",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": "string"},
            {"name": "price", "type": "double"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
        ],
    }
)
#: How long Spark's listeners may take to be told.
_TOLD_SECONDS: Final = 30.0
#: So many rows of 1 KB are in memory at a time.
_HELD_ROWS: Final = 250_000
_numbers = itertools.count()
_PROTO: Final = """
syntax = "proto3";
message Row { int64 id = 1; string name = 2; double price = 3; }
"""


def _rows(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(0, count, numPartitions=2).select(
        "id",
        sf.concat(sf.lit("customer-"), "id").alias("name"),
        (sf.col("id") * 0.25).alias("price"),
        sf.timestamp_seconds(sf.col("id") % 86400 + 1_700_000_000).alias("at"),
        sf.array(sf.lit("new"), sf.lit("paid")).alias("tags"),
    )


def _filler(size: int) -> Column:
    """Text that does not compress to nothing: digests of the number, as long as is asked for."""
    digests = [sf.sha2(sf.concat("id", sf.lit(f"-{at}")), 256) for at in range(size // 64 + 1)]
    return sf.substring(sf.concat(*digests), 1, size)


def _protobuf(rows: DataFrame) -> DataFrame:
    """Encoded by SQL: two numbers of eight fixed bytes would be no int64, so ids are short varints."""
    name = sf.substring("name", 1, 100)
    identity = sf.col("id") % 128
    value = sf.concat(
        sf.unhex(sf.lit("08")), sf.unhex(sf.lpad(sf.hex(identity), 2, "0")),
        sf.unhex(sf.lit("12")), sf.unhex(sf.lpad(sf.hex(sf.length(name)), 2, "0")), name.cast("binary"),
        sf.unhex(sf.lit("190000000000000440")),
    )  # fmt: skip
    return rows.select(value.alias("value"))


def _draining(frame: DataFrame, times: int = 1) -> Callable[[], None]:
    def run() -> None:
        for _ in range(times):
            frame.write.format("noop").mode("overwrite").save()

    return run


class _Cost(NamedTuple):
    seconds: float
    #: Of the JVM and its Python workers: what stays comparable on a machine that does other things as well.
    cpu_seconds: float
    #: Of Spark's tasks alone, without Python workers, the compiler and the collector of garbage.
    task_seconds: float


def _cost(spark: SparkSession, run: Callable[[], None]) -> _Cost:
    group = f"run-{next(_numbers)}"
    spark.sparkContext.setJobGroup(group, "one run")
    started, used = time.perf_counter(), _cpu_seconds()
    run()
    return _Cost(time.perf_counter() - started, _cpu_seconds() - used, _task_seconds(spark, group))


def _task_seconds(spark: SparkSession, group: str) -> float:
    tracker: Any = spark.sparkContext.statusTracker()
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    found = 0.0
    for job in tracker.getJobIdsForGroup(group):
        for stage in tracker.getJobInfo(job).stageIds:
            # Spark's listeners are told a little after the job has ended.
            deadline = time.monotonic() + _TOLD_SECONDS
            while str(store.lastStageAttempt(stage).status()) != "COMPLETE" and time.monotonic() < deadline:
                time.sleep(0.05)
            found += store.lastStageAttempt(stage).executorCpuTime() / 1e9
    return found


def _cpu_seconds() -> float:
    """Of all that this process started, directly or not, and that still lives."""
    parents, used = {}, {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal():
            with suppress(OSError):
                fields = (directory / "stat").read_text().rpartition(")")[2].split()
                parents[int(directory.name)] = int(fields[1])
                used[int(directory.name)] = int(fields[11]) + int(fields[12])
    ours = {os.getpid()}
    while found := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= found
    return sum(used[each] for each in ours if each in used) / os.sysconf("SC_CLK_TCK")


def _compare(
    spark: SparkSession, name: str, count: int, sides: dict[str, Callable[[], None]], runs: int
) -> None:
    for run in sides.values():
        run()  # compiles
    taken: dict[str, list[_Cost]] = {side: [] for side in sides}
    for _ in range(runs):
        for side, run in sides.items():
            taken[side].append(_cost(spark, run))
    first = next(iter(taken.values()))
    for side, costs in taken.items():
        rate, base = _rate(costs, count), _rate(first, count)
        cpu, base_cpu = (statistics.median(cost.cpu_seconds for cost in each) for each in (costs, first))
        tasks = sorted(cost.task_seconds / count * 1e6 for cost in costs)
        ratios = sorted(a.task_seconds / b.task_seconds for a, b in zip(first, costs, strict=True))
        slowest, fastest = (count / pick(cost.seconds for cost in costs) for pick in (max, min))
        print(
            f"{name:9} {side:9} {rate:10,.0f} rows/s ({slowest:,.0f} to {fastest:,.0f}), "
            f"{rate / base:.2f} of the first; "
            f"CPU {cpu / count * 1e6:.2f} us a row, {base_cpu / cpu:.2f} of the first; "
            f"tasks alone {statistics.median(tasks):.2f} us ({tasks[0]:.2f} to {tasks[-1]:.2f}), "
            f"{statistics.median(ratios):.2f} of the first ({ratios[0]:.2f} to {ratios[-1]:.2f})",
            flush=True,
        )


def _rate(costs: list[_Cost], count: int) -> float:
    return count / statistics.median(cost.seconds for cost in costs)


def _compare_json(spark: SparkSession, name: str, rows: DataFrame, count: int, times: int, runs: int) -> None:
    values = rows.select(sf.to_json(sf.struct("*")).cast("binary").alias("value"))
    values = values.localCheckpoint(storageLevel=StorageLevel.MEMORY_ONLY)
    parsed = values.select(sf.from_json(sf.col("value").cast("string"), _COLUMNS).alias("d"))
    sides = {
        "by hand": _draining(parsed.select("d.*"), times),
        "headrace": _draining(_ours(values, Decoding(Format.JSON, _COLUMNS)), times),
    }
    _compare(spark, name, count * times, sides, runs)


def _ours(values: DataFrame, decoding: Decoding) -> DataFrame:
    return decode(values, decoding).where("problem is null").select("decoded.*")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--jars", type=Path, default=Path(".cache/spark-jars"))
    parser.add_argument("--formats", default="json,json-1k,avro,protobuf")
    arguments = parser.parse_args()
    formats = arguments.formats.split(",")
    quiet = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
    }
    spark = session("bench-decoding", master="local[2]", jar_directory=arguments.jars, extra=quiet)
    spark.sparkContext.setLogLevel("ERROR")
    count, rows = arguments.rows, _rows(spark, arguments.rows)

    if "json" in formats:
        _compare_json(spark, "json", rows, count, 1, arguments.runs)
    if "json-1k" in formats:
        # What fits into memory, as often as it takes.
        times = max(1, count // _HELD_ROWS)
        wide = _rows(spark, count // times).withColumn("name", _filler(900))
        _compare_json(spark, "json-1k", wide, count // times, times, arguments.runs)
    if "avro" in formats:
        values = rows.select(to_avro(sf.struct("*"), _AVRO).alias("value"))
        values = values.localCheckpoint(storageLevel=StorageLevel.MEMORY_ONLY)
        by_avro = values.select(from_avro("value", _AVRO).alias("d")).select("d.*")
        sides = {
            "by hand": _draining(by_avro),
            "headrace": _draining(_ours(values, Decoding(Format.AVRO, _AVRO))),
        }
        _compare(spark, "avro", count, sides, arguments.runs)
    if "protobuf" in formats:
        values = _protobuf(rows).localCheckpoint(storageLevel=StorageLevel.MEMORY_ONLY)
        sides = {"headrace": _draining(_ours(values, Decoding(Format.PROTOBUF, _PROTO)))}
        _compare(spark, "protobuf", count, sides, arguments.runs)
    spark.stop()


if __name__ == "__main__":
    main()
