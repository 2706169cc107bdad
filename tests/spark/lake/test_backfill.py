"""History from a bucket and from files into the lake's tables, and the lake that goes on behind it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.arrow.columns import Bounds
from headrace.arrow.identity import ask_ids
from headrace.client.security import ClientSecurity
from headrace.spark.lake.backfill import job, plan
from headrace.spark.lake.backfill.job import Backfill, Backfilled
from headrace.spark.lake.backfill.refusals import BackfillFailed
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.job import LoadFailed
from headrace.spark.segments.job import list_spans
from headrace.spark.segments.place import Bucket, Directories, Place
from headrace.tier.names import encode_id
from tests.broker_process import BrokerProcess, HeadraceProcess
from tests.broker_process import Place as Machine
from tests.cluster.tiered_store import ENVIRONMENT, broker_properties
from tests.cluster_process import eventually
from tests.directories.object_store import ObjectStore, running_object_store
from tests.spark.lake.conftest import LakeUnderTest
from tests.spark.lake.histories import SMALL, by_confluent, create, fill, fill_with_everything, of_table

TIERED = {**SMALL, "remote.storage.enable": "true", "local.retention.bytes": "8000"}
_SECONDS = 180


class Killed(Exception):
    pass


class Dying(Backfill):
    """Dies after a thing that it does, as often as it has done it by then."""

    moment = ("", 0)

    def _did(self, what: str) -> None:
        if self.moment == (what, self.done.steps):
            raise Killed

    def read(self, *given: Any) -> Any:
        found = super().read(*given)
        self._did("read")
        return found

    def write_down(self, *given: Any) -> None:
        super().write_down(*given)
        self._did("write_down")

    def commit(self, *given: Any) -> None:
        super().commit(*given)
        self._did("commit")


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with running_object_store() as server:
        yield server


@pytest.fixture(scope="module")
def tiered(store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadraceProcess]:
    properties = {**broker_properties(store), "replica.high.watermark.checkpoint.interval.ms": "100"}
    directory = tmp_path_factory.mktemp("tiered")
    with HeadraceProcess(directory, properties, place=Machine(environment=ENVIRONMENT)) as running:
        yield running


@pytest.fixture
def lake(
    make_lake: Callable[[BrokerProcess, str], LakeUnderTest], tiered: HeadraceProcess, table_format: str
) -> LakeUnderTest:
    return make_lake(tiered, table_format)


@pytest.fixture
def credentials(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the bucket, for the driver and for tasks."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setitem(spark.sparkContext.environment, name, value)


@pytest.fixture
def many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "LEAST_TASK_BYTES", 9_000)
    monkeypatch.setattr(plan, "MOST_TASK_BYTES", 9_000)
    monkeypatch.setattr(plan, "TASKS_OF_A_CORE", 1)


def rules(topic: str, more: str = "") -> str:
    return f'[[topics]]\nname = "{topic}"\n{more}'


def in_bucket(broker: BrokerProcess, topic: str) -> Bucket:
    cluster_id, topic_id = ask_ids(broker.bootstrap, ClientSecurity.parse({}), topic)
    url, endpoint, region = (
        broker.properties[f"headrace.tier.{name}"] for name in ("url", "endpoint", "region")
    )
    return Bucket(url, cluster_id, encode_id(topic_id), endpoint, region)


def in_files(broker: BrokerProcess, topic: str) -> Directories:
    """Once its checkpoint says of enough that it is committed."""
    place = Directories((str(broker.log_dir),))

    def have() -> int:
        with place.opened() as opened:
            spans = list_spans(opened, topic, None, lambda _: Bounds())
        return sum(span.next_offset for span in spans)

    eventually(lambda: have() > 400, _SECONDS, "the files are known to be committed")
    return place


def local_start(broker: BrokerProcess, topic: str) -> int:
    return min(int(path.stem) for path in (broker.log_dir / f"{topic}-0").glob("*.log"))


def dies(lake: LakeUnderTest, config: LakeConfig, topic: str, place: Place, moment: tuple[str, int]) -> None:
    dying = Dying(lake.spark, config, job.of_topic(lake.spark, config, topic).route)
    dying.moment = moment
    with pytest.raises(Killed):
        dying.run(place, threading.Event())


def run(lake: LakeUnderTest, config: LakeConfig, topic: str, place: Place) -> Backfilled:
    return job.run(lake.spark, config, topic, place)


def check_history(lake: LakeUnderTest, config: LakeConfig, topic: str, ends: dict[int, int]) -> int:
    expected = [row for row in by_confluent(lake.broker.bootstrap, topic) if row[1] < ends.get(row[0], 0)]
    assert of_table(lake.table(config, topic)) == expected
    return len(expected)


def test_from_a_bucket_cut_off_at_each_moment_and_then_the_lake_goes_on(
    lake: LakeUnderTest, new_topic: Callable[[], str], credentials: None, many_steps: None
) -> None:
    topic, broker = new_topic(), lake.broker
    create(broker.bootstrap, topic, TIERED)
    fill_with_everything(broker.bootstrap, topic)
    eventually(lambda: local_start(broker, topic) > 0, _SECONDS, "history is in the bucket only")
    config, place = lake.config(rules(topic)), in_bucket(broker, topic)
    for moment in (("write_down", 0), ("commit", 0)):
        dies(lake, config, topic, place, moment)
    with pytest.raises(LoadFailed, match=r"has not ended; run `headrace lake backfill"):
        lake.load(config)
    done = run(lake, config, topic, place)
    assert done.complete
    assert done.steps >= 1
    assert check_history(lake, config, topic, done.ends) > 1000
    fill(broker.bootstrap, topic, "none", 50)
    lake.load(config)
    assert of_table(lake.table(config, topic)) == by_confluent(broker.bootstrap, topic)
    again = run(lake, config, topic, place)
    assert (again.complete, again.rows, again.ends) == (True, 0, done.ends)


@pytest.mark.parametrize("table_format", ["parquet"])
def test_from_files_and_the_rest_is_left_to_the_lake(
    lake: LakeUnderTest, new_topic: Callable[[], str], many_steps: None
) -> None:
    topic, broker = new_topic(), lake.broker
    create(broker.bootstrap, topic, SMALL)
    fill(broker.bootstrap, topic, "none", 500)
    waiting = fill(broker.bootstrap, topic, "none", 60, transaction="open")
    fill(broker.bootstrap, topic, "none", 60)
    config, place = lake.config(rules(topic), 'start = "latest"'), in_files(broker, topic)
    with pytest.raises(BackfillFailed, match=r"no backfill of .* has begun"):
        job.of_topic(lake.spark, config, topic).leave_rest()
    dies(lake, config, topic, place, ("commit", 0))
    left = job.of_topic(lake.spark, config, topic).leave_rest()
    assert left.complete
    assert 0 < check_history(lake, config, topic, left.ends) < 500
    # Whoever changes his mind before the lake begins gets the rest from the files.
    done = run(lake, config, topic, place)
    assert done.rows > 0
    check_history(lake, config, topic, done.ends)
    waiting.commit_transaction(60)
    lake.load(config)
    assert of_table(lake.table(config, topic)) == by_confluent(broker.bootstrap, topic)


@pytest.mark.parametrize("table_format", ["parquet"])
def test_a_disk_that_has_not_the_beginning_is_not_the_history(
    lake: LakeUnderTest, new_topic: Callable[[], str]
) -> None:
    topic, broker = new_topic(), lake.broker
    create(broker.bootstrap, topic, TIERED)
    fill(broker.bootstrap, topic, "none", 3000)
    eventually(lambda: local_start(broker, topic) > 0, _SECONDS, "history is in the bucket only")
    with pytest.raises(BackfillFailed, match=r"--tier reads it there"):
        run(lake, lake.config(rules(topic)), topic, in_files(broker, topic))
