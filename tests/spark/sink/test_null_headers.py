"""The connector gives null for every record without headers: the sink takes them as fast as empty lists."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from tests.broker_process import BrokerProcess
from tests.spark.sink.reading import create

_ROWS = 300_000
_HEADERS = "array<struct<key:string,value:binary>>"


def _cpu_ticks() -> int:
    """Of this process and of all that it started: Java, and Python for the tasks."""
    found = 0
    parents: dict[int, tuple[int, int]] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                fields = (each / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(each.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    for process, (_, ticks) in parents.items():
        at = process
        while at in parents and at != os.getpid():
            at = parents[at][0]
        if at == os.getpid():
            found += ticks
    return found


def test_null_headers_cost_what_empty_ones_cost(
    spark: SparkSession, headrace: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    """By the processors' time, so that it does not matter what else the machine does."""
    topic = new_topic()
    create(headrace.bootstrap, topic, 2)

    def cost(headers: str) -> int:
        before = _cpu_ticks()
        rows = spark.range(0, _ROWS, 1, 2).selectExpr(
            "cast(id as string) as key", "'value' as value", f"cast({headers} as {_HEADERS}) as headers"
        )
        rows.write.format("headrace").mode("append").options(
            **{"kafka.bootstrap.servers": headrace.bootstrap, "topic": topic}
        ).save()
        return _cpu_ticks() - before

    cost("array()")  # the first one compiles
    empty, null = cost("array()"), cost("null")
    assert null < 2 * empty, f"{null} ticks for null headers, {empty} for empty ones"
