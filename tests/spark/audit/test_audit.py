"""An audit of a whole pipeline finds what was done to it, and says nothing where nothing was."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.audit.verdict import Kind, State
from headrace.audit.verdict_topic import VerdictReader
from headrace.client.cluster import Cluster
from headrace.spark.audit.config import AuditRefused
from headrace.spark.audit.job import AuditDifference, PassResult
from tests.broker_process import BrokerProcess
from tests.spark.audit.faults import tampered, tampered_rows
from tests.spark.audit.pipeline import BEGIN_MS, WINDOW_MS, Pipeline, Sent, Teller, made

_WINDOWS = 4
_END_MS = BEGIN_MS + _WINDOWS * WINDOW_MS


def states(result: PassResult) -> dict[int, State]:
    """Of the windows with records, by their number."""
    found = {(each.window_ms - BEGIN_MS) // WINDOW_MS: each.state for each in result.verdicts}
    return {number: state for number, state in found.items() if number < _WINDOWS}


def test_a_clean_pipeline_is_certified_and_late_records_make_new_certificates(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    pipeline = Pipeline(spark, broker.bootstrap, tmp_path, format="delta")
    records = made(400, _WINDOWS)
    teller = Teller(pipeline.topic)
    teller.acknowledged(records)
    teller.tell(_END_MS + 1)
    pipeline.store(records)
    pipeline.tell(*teller.events)
    pipeline.load()
    auditor = pipeline.auditor()
    first = auditor.run_once()
    first.raise_first_difference()
    assert states(first) == dict.fromkeys(range(_WINDOWS), State.CERTIFIED)
    assert all(set(each.tiers) == {"producers", "log", "lake"} for each in first.verdicts)

    # Late: in the log and in the lake, and not told of yet. Neither an alarm nor the end of the certificate.
    late = made(40, _WINDOWS, seed=1)
    pipeline.store(late)
    before = Counter(record.partition for record in records)
    is_late = " or ".join(f"(partition = {each} and offset >= {count})" for each, count in before.items())
    pipeline.load(pipeline.records().where(is_late))
    teller.acknowledged(late)
    untold = auditor.run_once()
    untold.raise_first_difference()
    assert set(states(untold).values()) == {State.OPEN}
    assert not untold.news

    pipeline.tell(teller.tell(_END_MS + 10**9, closing=True))
    second = auditor.run_once()
    assert set(states(second).values()) == {State.CERTIFIED}
    assert {each.revision for each in second.news if each.tiers["log"].count} == {2}

    async def published() -> dict[int, int]:
        async with Cluster(broker.bootstrap) as cluster:
            reader = VerdictReader(cluster, pipeline.verdicts_topic)
            seen = await reader.catch_up()
            await reader.close()
            return {window: verdict.tiers["lake"].count for (_, window), verdict in seen.items()}

    counts = asyncio.run(published())
    assert sum(counts.values()) == 440


def test_each_record_that_went_wrong_is_found_with_its_tier_partition_and_window(
    spark: SparkSession, headrace: BrokerProcess, tmp_path: Path
) -> None:
    """Each fault in a window of its own, and two windows without one."""
    faults = dict(enumerate((tier, kind) for tier in ("log", "lake") for kind in Kind))
    windows = len(faults) + 2
    pipeline = Pipeline(spark, headrace.bootstrap, tmp_path)
    records = made(400, windows)
    victims = {number: next(each for each in records if in_window(each, number)) for number in faults}
    teller = Teller(pipeline.topic)
    teller.acknowledged(records)
    teller.tell(BEGIN_MS + windows * WINDOW_MS, closing=True)
    pipeline.tell(*teller.events)
    stored = list(records)
    for number, (tier, kind) in faults.items():
        if tier == "log":
            stored = tampered(stored, stored.index(victims[number]), kind)
    pipeline.store(stored)
    rows = pipeline.records()
    for number, (tier, kind) in faults.items():
        if tier == "lake":
            rows = tampered_rows(rows, victims[number], kind)
    pipeline.load(rows)
    # Silent after less than nothing: nobody is waited for who might still tell of what is too many.
    result = pipeline.auditor(silent_after_ms=-600_000).run_once()
    found = {(each.window_ms - BEGIN_MS) // WINDOW_MS: each for each in result.verdicts}
    named = {
        number: [(d.tier, d.partition, d.kind) for d in each.differences] for number, each in found.items()
    }
    assert named == {
        **{number: [(tier, victims[number].partition, kind)] for number, (tier, kind) in faults.items()},
        windows - 2: [],
        windows - 1: [],
    }
    assert [found[number].state for number in (windows - 2, windows - 1)] == [State.CERTIFIED] * 2
    with pytest.raises(AuditDifference) as raised:
        result.raise_first_difference()
    assert (raised.value.difference.tier, raised.value.difference.kind) == ("log", Kind.LOST)
    assert "2023-11-14T22:13:20Z" in str(raised.value)


def in_window(record: Sent, number: int) -> bool:
    return record.value is not None and (record.timestamp_ms - BEGIN_MS) // WINDOW_MS == number


def test_a_producer_that_dies_leaves_its_windows_incomplete(
    spark: SparkSession, headrace: BrokerProcess, tmp_path: Path
) -> None:
    pipeline = Pipeline(spark, headrace.bootstrap, tmp_path)
    records = made(200, _WINDOWS)
    half = [each for each in records if each.timestamp_ms < BEGIN_MS + 2 * WINDOW_MS]
    dying = Teller(pipeline.topic, "checkout", "web-3")
    dying.acknowledged(half)
    dying.tell(BEGIN_MS + 2 * WINDOW_MS)
    pipeline.store(records)
    pipeline.tell(*dying.events)
    # The events are old by the clock of nobody but the test: silent after nothing.
    auditor = pipeline.auditor(lake=False, silent_after_ms=-10_000)
    result = auditor.run_once()
    result.raise_first_difference()
    certified, incomplete = State.CERTIFIED, State.INCOMPLETE
    assert states(result) == {0: certified, 1: certified, 2: incomplete, 3: incomplete}
    (headline,) = {each.headline for each in result.verdicts if each.window_ms == BEGIN_MS + 2 * WINDOW_MS}
    assert "producer checkout on web-3 is silent" in headline

    # It comes back for the last window: the one in between stays what it is.
    after = Teller(pipeline.topic, "checkout", "web-3", now_ms=BEGIN_MS + 3 * WINDOW_MS)
    after.acknowledged([each for each in records if each.timestamp_ms >= BEGIN_MS + 3 * WINDOW_MS])
    after.tell(_END_MS, closing=True)
    pipeline.tell(*after.events)
    again = auditor.run_once()
    again.raise_first_difference()
    assert {number: state for number, state in states(again).items() if number > 1} == {
        2: incomplete,
        3: certified,
    }


def test_a_lost_event_is_missed_and_a_doubled_one_counts_once(
    spark: SparkSession, headrace: BrokerProcess, tmp_path: Path
) -> None:
    pipeline = Pipeline(spark, headrace.bootstrap, tmp_path)
    records = made(200, _WINDOWS)
    teller = Teller(pipeline.topic)
    for number in range(_WINDOWS):
        begin = BEGIN_MS + number * WINDOW_MS
        teller.acknowledged(each for each in records if begin <= each.timestamp_ms < begin + WINDOW_MS)
        teller.tell(begin + WINDOW_MS, closing=number == _WINDOWS - 1)
    pipeline.store(records)
    hello, one, two, three, four = teller.events
    auditor = pipeline.auditor(lake=False)
    pipeline.tell(hello, one, one, two, four, b"no event at all", b'{"version":1}')
    result = auditor.run_once()
    result.raise_first_difference()
    certified, incomplete = State.CERTIFIED, State.INCOMPLETE
    assert states(result) == {0: certified, 1: certified, 2: incomplete, 3: incomplete}
    assert "sent an event 3 that was lost" in "".join(each.headline for each in result.verdicts)
    # It was only late.
    pipeline.tell(three)
    assert {state for number, state in states(auditor.run_once()).items() if number > 1} == {certified}


def test_a_lake_that_is_behind_is_no_difference(
    spark: SparkSession, headrace: BrokerProcess, tmp_path: Path
) -> None:
    pipeline = Pipeline(spark, headrace.bootstrap, tmp_path, format="iceberg")
    records = made(200, _WINDOWS)
    pipeline.store(records)
    pipeline.load(pipeline.records().where("offset < 60"))
    auditor = pipeline.auditor(with_producers=False)
    result = auditor.run_once()
    result.raise_first_difference()
    assert states(result)[_WINDOWS - 1] is State.INCOMPLETE
    assert "lake has partition" in result.verdicts[_WINDOWS - 1].headline
    pipeline.load(pipeline.records().where("offset >= 60"))
    assert State.CERTIFIED in {each.state for each in auditor.run_once().verdicts if each.tiers["log"].count}
    with pytest.raises(AuditRefused, match="windows of 1000 ms"):
        pipeline.auditor(with_producers=False, window_ms=2 * WINDOW_MS).run_once()
