"""The parts of the use cases that need Spark, small and in the tests' own session.

`poe examples` runs them by their one command, at full size, and kills what they kill.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.cloudpickle.cloudpickle import register_pickle_by_value
from pyspark.sql import SparkSession

from headrace.testing import Cluster

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
