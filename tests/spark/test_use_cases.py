"""The parts of the use cases that need Spark, small and in the tests' own session.

`poe examples` runs them by their one command, at full size, and kills what they kill.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.cloudpickle.cloudpickle import register_pickle_by_value
from pyspark.sql import SparkSession

from headrace.connect.plugins import installed
from headrace.connect.postgres.lsn import lsn_of
from headrace.connect.runner import Report, Run
from headrace.connect.stores import Topics
from headrace.spark import run_tables
from headrace.spark.connect.context import Context
from headrace.spark.connect.looping import ConnectorLoop
from headrace.spark.connect.runner import SparkRunner
from headrace.spark.connect.sink_loop import SinkLoop
from headrace.spark.connect.source_loop import SourceLoop
from headrace.spark.mirror import config as mirrors
from headrace.spark.mirror import job as mirror_job
from headrace.testing import Cluster
from tests.broker_process import BrokerProcess

EXAMPLES = Path(__file__).parents[2] / "examples"
_STORE = "spark.sql.streaming.stateStore.providerClass"

Modules = Callable[[str, str], Any]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Modules]:
    """A module of an example. Two of them have modules of the same names, so none outlives its test."""

    def find(example: str, name: str) -> Any:
        if str(EXAMPLES / example) not in sys.path:
            monkeypatch.syspath_prepend(str(EXAMPLES / example))
        return importlib.import_module(name)

    yield find
    for name, found in list(sys.modules.items()):
        if str(EXAMPLES) in (getattr(found, "__file__", None) or ""):
            del sys.modules[name]


def test_visits_are_those_of_a_batch_over_the_log(
    spark: SparkSession, module: Modules, headrace_cluster: Cluster, tmp_path: Path
) -> None:
    clicks, job, check = (module("sessions", name) for name in ("clicks", "job", "check"))
    for found in (clicks, job, module("sessions", "visits")):
        # Spark's Python processes began before this test, and do not find its files.
        register_pickle_by_value(found)  # type: ignore[no-untyped-call]  # PySpark gives it no types
    spark.conf.set(_STORE, job.SETTINGS[_STORE])
    bootstrap = headrace_cluster.bootstrap
    clicks.create_topics(bootstrap)
    day = clicks.day(15, 60, 1_700_000_000_000)
    half = len(day) // 2
    try:
        for part in (day[:half], [*day[half:], clicks.last_click(day)]):  # the second goes on with the state
            clicks.send(bootstrap, part, 0)
            job.start(spark, bootstrap, str(tmp_path / "checkpoint"), until_end=True).awaitTermination()
    finally:
        spark.conf.unset(_STORE)
    verdict = check.check(spark, bootstrap)
    assert verdict.holds, verdict
    assert verdict.clicks == len(day)
    assert verdict.visits > 15
    visit = headrace_cluster.records("visits")[0]
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("visits", visit.value, visit.key)
    assert producer.flush(30) == 0
    assert not check.check(spark, bootstrap).holds, "a visit is there twice, and the check does not see it"


def test_a_second_version_of_a_view_is_built_from_the_first_record(
    spark: SparkSession, module: Modules, headrace_cluster: Cluster, tmp_path: Path
) -> None:
    orders, views, check = (module("reprocessing", name) for name in ("orders", "views", "check"))
    orders.create_topic(headrace_cluster.bootstrap)
    shop = orders.Shop(headrace_cluster.bootstrap)
    revenue = views.Views(spark, headrace_cluster.bootstrap, tmp_path)
    shop.send(1_000)
    revenue.start("v1", until_end=True).awaitTermination()
    revenue.switch("v1")
    shop.send(500)
    revenue.start("v2", until_end=True).awaitTermination()
    revenue.switch("v2")
    assert (revenue.orders_in("v1"), revenue.orders_in("v2"), revenue.current()) == (1_000, 1_500, "v2")
    assert not check.check(revenue, shop.sent).holds, "v1 is behind the log, and the check does not see it"
    revenue.start("v1", until_end=True).awaitTermination()
    verdict = check.check(revenue, shop.sent)
    assert verdict.holds, verdict


def test_the_table_has_the_accounts_of_the_events(
    spark: SparkSession, module: Modules, headrace_cluster: Cluster, tmp_path: Path
) -> None:
    accounts, topics, view, writer = (
        module("event-sourcing", name) for name in ("accounts", "topics", "view", "writer")
    )
    bootstrap = headrace_cluster.bootstrap
    topics.create_topics(bootstrap)
    producer = Producer({"bootstrap.servers": bootstrap})
    for version in range(1, 6):
        for name in ("ann", "ben"):
            account = accounts.Account(version - 1, 10 * (version - 1))
            command = accounts.Command(f"{name} {version}", name, version - 1, "deposit", 10)
            producer.produce(topics.EVENTS, accounts.decide(account, command).encode(), name)
    assert producer.flush(30) == 0
    found = view.accounts_in(view.bring_up(spark, view.configuration(bootstrap, tmp_path)))
    assert found == writer.replay(bootstrap) == {name: accounts.Account(5, 50) for name in ("ann", "ben")}
    assert len(headrace_cluster.records(topics.EVENTS)) == 10


@contextmanager
def running(context: Context, file: Path, kind: type[ConnectorLoop]) -> Iterator[str]:
    """A connector as its file says, in the tests' session instead of a worker's; its name."""
    document = json.loads(file.read_text())
    properties = {**document["config"], "name": document["name"], "poll.interval.ms": "100"}
    failures: list[Report] = []
    described = installed().find(properties["connector.class"])
    loop = kind(Run(document["name"], described, properties), failures.append, context)
    loop.start()
    try:
        yield document["name"]
    finally:
        ended = threading.Event()
        loop.end(ended.set)
        assert ended.wait(300), failures


def _until(done: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(2_500):
        if done():
            return
        waiting.wait(0.2)
    raise AssertionError("it has not come")


def test_changes_of_a_database_reach_another_one_and_a_table(
    spark: SparkSession, module: Modules, headrace_cluster: Cluster, headrace: BrokerProcess, tmp_path: Path
) -> None:
    names = ("check", "commands", "enrich", "joined", "postgres", "shop", "topics")
    check, commands, enrich, joined, postgres, shop_module, topics = (module("shop", name) for name in names)
    for found in (enrich, joined, topics):
        register_pickle_by_value(found)  # type: ignore[no-untyped-call]  # PySpark gives it no types
    first, second = headrace_cluster.bootstrap, headrace.bootstrap
    topics.create_topics(first)
    with postgres.Postgres() as shop_db, postgres.Postgres() as copy_db:
        shop = shop_module.Shop(shop_db)
        shop.fill(30, 100)
        with copy_db.connect() as db:
            db.execute(shop_module.COPY)
        values = {"BOOTSTRAP": first, "SECOND": second, "SHOP_PORT": shop_db.port, "COPY_PORT": copy_db.port}
        files = {
            name: commands.filled(tmp_path, name, **values)
            for name in ("changes.json", "rows.json", "mirror.toml", "table.toml")
        }

        def go_on() -> None:
            enrich.start(spark, first, str(tmp_path / "checkpoint"), until_end=True).awaitTermination()
            mirror_job.run(spark, mirrors.load(files["mirror.toml"]), once=True)

        source, target = (
            Context(spark, {"bootstrap.servers": each}, Topics(), jobs=1) for each in (first, second)
        )
        spark.conf.set(_STORE, enrich.STORE[_STORE])
        try:
            with running(source, files["changes.json"], SourceLoop) as changes:
                runner = SparkRunner(source)

                def captured() -> bool:
                    ((end,),) = shop_db.rows("SELECT pg_current_wal_flush_lsn()::text")
                    told = asyncio.run(runner.source_position(changes)).offset({"slot": "headrace_changes"})
                    return told is not None and lsn_of(told["lsn"]) >= lsn_of(end)

                _until(captured)
                go_on()  # with the rows that were copied
                shop.trade(150)
                _until(captured)
                go_on()  # with the state
            with running(target, files["rows.json"], SinkLoop):
                _until(lambda: not check.compare_databases(shop_db, copy_db).differences)
        finally:
            spark.conf.unset(_STORE)
            source.close()
            target.close()
        run_tables(spark, files["table.toml"], once=True)
        verdict = check.compare_databases(shop_db, copy_db)
        check.compare_table(verdict, shop_db, spark, files["table.toml"])
        verdict.windows = check.audited(spark, files["mirror.toml"], tmp_path / "audit")
        assert verdict.holds, verdict
        assert verdict.rows["the table"] > 90
        with copy_db.connect() as db:
            db.execute("UPDATE orders_enriched SET city = 'Rome' WHERE id = (SELECT max(id) FROM orders)")
        (told,) = check.compare_databases(shop_db, copy_db).differences
        assert "Rome" in told
