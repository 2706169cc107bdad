"""The pictures of the README and of docs/benchmarks.md, drawn from recorded runs.

    python -m bench.pictures            all of them, into docs/img, for light and for dark pages
    python -m bench.pictures --check    exit code 1 if a picture is not what the records say

A picture has six rows at most: it is for the eye, and the tables beside it have everything.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench import pipeline_results, results
from bench.apache_kafka import ROOT, VERSION
from bench.chart import THEMES, Chart, Row, as_cost, draw
from bench.quantity import Comparison

IMAGES: Final = ROOT / "docs" / "img"
MOST_ROWS: Final = 6
KAFKA: Final = f"Apache Kafka {VERSION}"

# Which run is the record of what. Of a case that was measured again, the later run.
_AT_REST = "2026-11-15T040148Z"
_BATCHES = "2026-11-15T042441Z"
_REPLICATED = "2026-11-15T081955Z"
_GROUPS = "2026-11-15T225450Z"
_COMPACTION = "2026-11-15T230041Z"
_GROUP_MEMORY = "2026-11-15T231603Z"
_CONSUME_AGAIN = "2026-11-17T191516Z"
_MEMORY_AGAIN = "2026-11-18T183652Z"
_PARTITIONS_AGAIN = "2026-11-18T184027Z"


class Pick(NamedTuple):
    """A quantity of a recorded run, in words that need no others."""

    run: str
    case: str
    quantity: str
    label: str


class Picture(NamedTuple):
    name: str
    title: str
    picks: Sequence[Pick]


COMPARED: Final = (
    Picture(
        "bench-overview",
        "What Headrace costs beside Apache Kafka",
        (
            Pick(_AT_REST, "start", "start_s", "Starting, until the first answer"),
            Pick(_MEMORY_AGAIN, "start", "idle_mb", "Memory of an idle broker"),
            Pick(_REPLICATED, "replicated-100-6p", "cpu_s_per_million",
                 "CPU to produce, three replicas, acks=all"),
            Pick(_BATCHES, "small-5", "cpu_us_per_request", "CPU to produce one record per request"),
            Pick(_CONSUME_AGAIN, "consume-1k-6p", "cpu_s_per_gb", "CPU to consume records of 1 KB"),
            Pick(_PARTITIONS_AGAIN, "partitions", "create_ms", "Time to create 1,000 partitions"),
        ),
    ),
    Picture(
        "bench-cpu",
        "CPU of one broker",
        (
            Pick(_BATCHES, "small-5", "cpu_us_per_request", "Produce, one record per request, 5 in flight"),
            Pick(_BATCHES, "small-1", "cpu_us_per_request", "Produce, one record per request, 1 in flight"),
            Pick(_BATCHES, "produce-16k", "cpu_s_per_gb", "Produce 100 B records, batches of 16 KB"),
            Pick(_BATCHES, "produce-1m", "cpu_s_per_gb", "Produce 100 B records, batches of 1 MB"),
            Pick(_BATCHES, "consume-100", "cpu_s_per_gb", "Consume 100 B records"),
            Pick(_BATCHES, "consume-1k-6p", "cpu_s_per_gb", "Consume 1 KB records, 6 partitions"),
        ),
    ),
    Picture(
        "bench-throughput",
        "Time that the same load takes, one broker",
        (
            Pick(_BATCHES, "small-5", "requests_per_s", "Produce, one record per request, 5 in flight"),
            Pick(_BATCHES, "produce-16k", "records_per_s", "Produce 100 B records, batches of 16 KB"),
            Pick(_BATCHES, "produce-1m", "records_per_s", "Produce 100 B records, batches of 1 MB"),
            Pick(_BATCHES, "consume-100", "records_per_s", "Consume 100 B records"),
            Pick(_BATCHES, "consume-1k-6p", "records_per_s", "Consume 1 KB records, 6 partitions"),
            Pick(_AT_REST, "partitions", "records_per_s", "Produce to 1,000 partitions"),
        ),
    ),
    Picture(
        "bench-resting",
        "Start, memory and latency of one broker",
        (
            Pick(_AT_REST, "start", "start_s", "Start to the first answer"),
            Pick(_MEMORY_AGAIN, "start", "idle_mb", "Idle memory"),
            Pick(_AT_REST, "connections", "bytes_each", "Memory of an idle connection"),
            Pick(_PARTITIONS_AGAIN, "partition-memory", "kb_each", "Memory of an idle partition"),
            Pick(_AT_REST, "latency", "p99_ms", "End to end, one record at a time, p99"),
            Pick(_PARTITIONS_AGAIN, "partitions", "create_ms", "Create 1,000 partitions"),
        ),
    ),
    Picture(
        "bench-replicated",
        "CPU of three brokers: three replicas, acks=all",
        (
            Pick(_REPLICATED, "replicated-100-1p", "cpu_s_per_million", "100 B records, 1 partition"),
            Pick(_REPLICATED, "replicated-100-6p", "cpu_s_per_million", "100 B records, 6 partitions"),
            Pick(_REPLICATED, "replicated-1k-1p", "cpu_s_per_million", "1 KB records, 1 partition"),
            Pick(_REPLICATED, "replicated-1k-6p", "cpu_s_per_million", "1 KB records, 6 partitions"),
            Pick(_REPLICATED, "replicated-16k", "cpu_s_per_million", "100 B records, batches of 16 KB"),
            Pick(_REPLICATED, "replicated-small", "cpu_s_per_million", "One record per request"),
        ),
    ),
    Picture(
        "bench-groups",
        "Groups, transactions and compaction",
        (
            Pick(_GROUPS, "commits-1", "cpu_us_per_commit", "CPU of an offset commit"),
            Pick(_GROUPS, "rebalance-classic", "ms", "Rebalance of 100 members, classic protocol"),
            Pick(_GROUPS, "rebalance-server", "ms", "Rebalance of 100 members, KIP-848"),
            Pick(_GROUPS, "transactions-v2", "per_cpu_s", "CPU of a transaction of 10 records"),
            Pick(_GROUP_MEMORY, "group-memory-server", "all_mb", "Memory with 1,000 groups of 10 members"),
            Pick(_COMPACTION, "compaction-latency", "p99_ms", "Produce p99 while a topic is compacted"),
        ),
    ),
)  # fmt: skip


@cache
def _document(run: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((results.DIRECTORY / f"{run}.json").read_text())
    return document


@cache
def _comparisons(run: str) -> dict[tuple[str, str], Comparison]:
    return {(one.case, one.quantity.key): one for one in results.load([results.DIRECTORY / f"{run}.json"])}


def _compared(picture: Picture) -> Chart:
    rows = [as_cost(_comparisons(pick.run)[pick.case, pick.quantity], pick.label) for pick in picture.picks]
    days = sorted({_day(pick.run) for pick in picture.picks})
    (cores,) = {_document(pick.run)["machine"]["cores"] for pick in picture.picks}
    return Chart(
        picture.title,
        KAFKA,
        rows,
        f"Compiled build, medians of alternating runs, {cores} cores, {_listed(days)}; docs/benchmarks.md",
    )


def _day(run: str) -> str:
    """A run with a note is one that other work disturbed."""
    busy = " (busy machine)" if "note" in _document(run)["settings"] else ""
    return f"{_document(run)['when'][:10]}{busy}"


def _listed(days: Sequence[str]) -> str:
    """2026-11-15, 17 and 18."""
    first, *others = days
    rest = [day.removeprefix(first[:8]) for day in others]
    if not rest:
        return first
    return f"{', '.join([first, *rest[:-1]])} and {rest[-1]}"


def _pipeline() -> list[tuple[str, Chart]]:
    day = json.loads(pipeline_results.LAKE.read_text())["time"][:10]
    caption = f"Compiled broker, Spark in local[2], medians of alternating runs, {day}. docs/benchmarks.md"

    def on_both(load: str, job: str, label: str) -> Row:
        return pipeline_results.lake(load, f"{job} on Headrace", f"{job} on Apache Kafka", label, 1.0)

    def by_bare(load: str, label: str) -> Row:
        return pipeline_results.lake(load, "lake on Headrace", "bare on Headrace", label, 0.9)

    from_topics = [
        on_both("bytes-100", "bare", "Spark's connector to Parquet, 100 B records"),
        on_both("bytes-1k", "bare", "Spark's connector to Parquet, 1 KB records"),
        on_both("json-100", "bare", "Spark's connector, JSON of 100 B to Parquet"),
        on_both("bytes-100", "lake", "headrace lake to Parquet, 100 B records"),
        on_both("bytes-1k", "lake", "headrace lake to Parquet, 1 KB records"),
        on_both("json-100", "lake", "headrace lake, JSON of 100 B to Parquet"),
    ]
    beside_spark = [
        by_bare("bytes-100", "headrace lake to Parquet, 100 B records"),
        by_bare("bytes-1k", "headrace lake to Parquet, 1 KB records"),
        by_bare("json-100", "headrace lake, JSON of 100 B to Parquet"),
        by_bare("json-1k", "headrace lake, JSON of 1 KB to Parquet"),
        pipeline_results.sink("headrace", 100, "exactly-once sink, 100 B records", 0.5),
        pipeline_results.sink("headrace", 1000, "exactly-once sink, 1 KB records", 0.5),
    ]
    return [
        ("bench-spark-topics", Chart("The same Spark job, from Headrace or from Apache Kafka: its time",
                                     f"the job on {KAFKA}", from_topics, caption)),
        ("bench-spark-jobs", Chart("Our Spark jobs beside Spark's own, on Headrace: their time",
                                   "Spark's own connector and sink, at least once", beside_spark, caption)),
    ]  # fmt: skip


def charts() -> list[tuple[str, Chart]]:
    return [*((picture.name, _compared(picture)) for picture in COMPARED), *_pipeline()]


def drawn() -> dict[Path, str]:
    """Each file, and what it has to hold."""
    return {
        IMAGES / f"{name}-{theme.name}.svg": draw(chart, theme) + "\n"
        for name, chart in charts()
        for theme in THEMES
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.pictures", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    given = parser.parse_args()
    stale = [path for path, text in drawn().items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)}{' is stale' if given.check else ''}")
        if not given.check:
            path.write_text(drawn()[path])
    return 1 if given.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
