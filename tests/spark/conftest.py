"""A real Spark, and a real broker of either kind. A session costs seconds: a worker keeps one."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.spark import jars, session
from tests.apache_kafka import CACHE
from tests.both_brokers import apache_kafka as apache_kafka
from tests.both_brokers import broker as broker
from tests.both_brokers import headrace as headrace
from tests.cluster.tiered_store import ENVIRONMENT
from tests.spark import further_forms, shared_classes

_HERE = Path(__file__).parent
#: On two cores more tasks than this only wait for each other.
_SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
}
#: By what they take. The last files of a run are to be short ones: a worker may have to wait for the other.
_LONGEST_FIRST = (
    "test_clickstream.py",
    "sink/test_crashes.py",
    "lake/test_evolution.py",
    "lake/test_growth.py",
    "lake/test_upkeep.py",
    "audit/test_audit.py",
    "test_secured.py",
    "table/test_model.py",
    "connector/test_broker_death.py",
    "test_secured_cluster.py",
    "test_standalone.py",
    "test_doctor.py",
    "lake/test_commands.py",
    "lake/test_interrupted.py",
    "source/test_losses.py",
    "sink/test_time_outs.py",
)
_numbers = itertools.count()


@pytest.hookimpl(trylast=True)  # pytest itself sorts by the parameters of fixtures
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first job of a session compiles for many seconds; on a busy machine that is no failure."""
    items.sort(key=_turn)
    further_forms.leave_out(items)
    for item in items:
        if item.path.is_relative_to(_HERE):
            under_fire = item.path.is_relative_to(_HERE / "fire")
            item.add_marker(pytest.mark.timeout(1800 if under_fire else 600))
            # What Py4J leaves to the collector is not ours to close.
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


def _turn(item: pytest.Item) -> int:
    """Those that are not named come last, in the order in which they were found."""
    named = item.path.is_relative_to(_HERE) and str(item.path.relative_to(_HERE))
    return _LONGEST_FIRST.index(named) if named in _LONGEST_FIRST else len(_LONGEST_FIRST)


@pytest.fixture(scope="session", autouse=True)
def spark_jars() -> Path:
    """Brought by tests/setup_clients.sh."""
    directory = CACHE / "spark-jars"
    os.environ[jars.DIRECTORY_VARIABLE] = str(directory)
    os.environ.update(ENVIRONMENT)  # tasks have what the driver's Java had when it started
    shared_classes.make()
    os.environ["SPARK_SUBMIT_OPTS"] = shared_classes.short_lived()  # for the drivers of commands and examples
    return directory


@pytest.fixture(scope="session")
def spark(spark_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    chosen = {**_SMALL, "spark.driver.extraJavaOptions": shared_classes.short_lived()}
    made = session("tests", master="local[2]", warehouse=tmp_path_factory.mktemp("warehouse"), extra=chosen)
    made.sparkContext.setLogLevel("ERROR")
    yield made
    made.stop()


@pytest.fixture
def new_topic() -> Callable[[], str]:
    """Names that no other test of this worker uses."""
    return lambda: f"topic-{os.getpid()}-{next(_numbers)}"
