"""Decoding beside Spark's functions written by hand: the same rows, made in memory, both sides in turn.

    uv run python -m bench.decoding --rows 2000000

"By hand" is what somebody writes who trusts the data: the parser, and its fields as columns. Ours tells good
from bad besides. All columns are read to the end and thrown away (Spark's `noop` sink).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro, to_avro

from headrace.spark.decoding.decode import decode
from headrace.spark.decoding.formats import Decoding, Format
from headrace.spark.session import session

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


def _drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


class _Cost(NamedTuple):
    seconds: float
    #: Of the JVM and its Python workers: what stays comparable on a machine that does other things as well.
    cpu_seconds: float


def _cost(run: Callable[[], None]) -> _Cost:
    started, used = time.perf_counter(), _cpu_seconds()
    run()
    return _Cost(time.perf_counter() - started, _cpu_seconds() - used)


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


def _compare(name: str, count: int, sides: dict[str, Callable[[], None]], runs: int) -> None:
    for run in sides.values():
        run()  # compiles
    taken: dict[str, list[_Cost]] = {side: [] for side in sides}
    for _ in range(runs):
        for side, run in sides.items():
            taken[side].append(_cost(run))
    first = next(iter(taken.values()))
    for side, costs in taken.items():
        rate, base = _rate(costs, count), _rate(first, count)
        cpu, base_cpu = (statistics.median(cost.cpu_seconds for cost in each) for each in (costs, first))
        slowest, fastest = (count / pick(cost.seconds for cost in costs) for pick in (max, min))
        print(
            f"{name:9} {side:9} {rate:10,.0f} rows/s ({slowest:,.0f} to {fastest:,.0f}), "
            f"{rate / base:.2f} of the first; "
            f"CPU {cpu / count * 1e6:.2f} us a row, {base_cpu / cpu:.2f} of the first",
            flush=True,
        )


def _rate(costs: list[_Cost], count: int) -> float:
    return count / statistics.median(cost.seconds for cost in costs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--jars", type=Path, default=Path(".cache/spark-jars"))
    parser.add_argument("--formats", default="json,avro,protobuf")
    arguments = parser.parse_args()
    quiet = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
    }
    spark = session("bench-decoding", master="local[2]", jar_directory=arguments.jars, extra=quiet)
    spark.sparkContext.setLogLevel("ERROR")
    count, rows = arguments.rows, _rows(spark, arguments.rows)

    def ours(values: DataFrame, decoding: Decoding) -> Callable[[], None]:
        decoded = decode(values, decoding).where("problem is null").select("decoded.*")
        return lambda: _drain(decoded)

    if "json" in arguments.formats:
        values = rows.select(sf.to_json(sf.struct("*")).cast("binary").alias("value"))
        values = values.localCheckpoint(storageLevel=StorageLevel.MEMORY_ONLY)
        by_hand = values.select(sf.from_json(sf.col("value").cast("string"), _COLUMNS).alias("d")).select(
            "d.*"
        )
        sides = {
            "by hand": lambda: _drain(by_hand),
            "headrace": ours(values, Decoding(Format.JSON, _COLUMNS)),
        }
        _compare("json", count, sides, arguments.runs)
    if "avro" in arguments.formats:
        values = rows.select(to_avro(sf.struct("*"), _AVRO).alias("value"))
        values = values.localCheckpoint(storageLevel=StorageLevel.MEMORY_ONLY)
        by_avro = values.select(from_avro("value", _AVRO).alias("d")).select("d.*")
        sides = {"by hand": lambda: _drain(by_avro), "headrace": ours(values, Decoding(Format.AVRO, _AVRO))}
        _compare("avro", count, sides, arguments.runs)
    if "protobuf" in arguments.formats:
        values = _protobuf(rows).localCheckpoint(storageLevel=StorageLevel.MEMORY_ONLY)
        _compare(
            "protobuf", count, {"headrace": ours(values, Decoding(Format.PROTOBUF, _PROTO))}, arguments.runs
        )
    spark.stop()


if __name__ == "__main__":
    main()
