"""A mirror that workers run: killed, taken over, and told to step aside for one that is started by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast
from urllib.error import HTTPError

import pytest
import yaml
from click.testing import CliRunner
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from headrace.cli.main import cli
from headrace.spark.mirror import config, job
from headrace.testing.connect import Workers
from tests.broker_process import BrokerProcess, HeadraceProcess
from tests.spark.mirror.ends import Filler, compare
from tests.spark.sink.reading import create, read

pytestmark = pytest.mark.timeout(1800)

LOST, KEPT = "lost", "kept"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with HeadraceProcess(tmp_path_factory.mktemp("source"), {}) as process:
        yield process


def _file(path: Path, source: str) -> Path:
    """For `headrace apply`."""
    settings = {
        "connector.class": "mirror",
        "source.bootstrap.servers": source,
        "topics": [KEPT, LOST],
        "mirror.name": "dr",
        "mirror.max_records_per_batch": 100,
        "poll.interval.ms": 100,
    }
    path.write_text(yaml.safe_dump({"owns": {"connectors": ["dr"]}, "connectors": {"dr": settings}}))
    return path


def _toml(path: Path, source: str, target: str) -> Path:
    path.write_text(
        f'[source]\n"bootstrap.servers" = "{source}"\n[target]\n"bootstrap.servers" = "{target}"\n'
        f'[mirror]\nname = "dr"\n[[topics]]\nname = "{KEPT}"\n[[topics]]\nname = "{LOST}"\n'
    )
    return path


def _headrace(*arguments: str) -> str:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def _still(workers: Workers) -> str | None:
    """What its task says while it runs."""
    status = workers.status("dr")
    tasks = [] if status is None else status["tasks"]
    return cast("str | None", tasks[0].get("trace")) if tasks and tasks[0]["state"] == "RUNNING" else None


def _count(workers: Workers, topic: str) -> int:
    return len(workers.records(topic))


def _behind(toml: Path) -> int:
    status = json.loads(_headrace("mirror", "status", "--config", str(toml), "--json"))
    return sum(each["lag"] for each in status["topics"]) if status["topics"] else 1


def test_workers_mirror_every_record_once_whoever_dies_and_say_what_stands_still(
    spark: SparkSession, source: BrokerProcess, headrace: BrokerProcess, tmp_path: Path
) -> None:
    there, here = source.bootstrap, headrace.bootstrap
    for topic in (KEPT, LOST):
        create(there, topic, 2)
    fillers = [Filler(there, topic, 2, seed) for seed, topic in enumerate((KEPT, LOST))]
    for filler in fillers:
        filler.fill(1_500)
    toml = _toml(tmp_path / "mirror.toml", there, here)
    with ExitStack() as stack:
        workers = stack.enter_context(Workers(tmp_path, here, workers=2))
        url = workers.workers[0].url
        file = _file(tmp_path / "cluster.yaml", there)
        asked = ("--bootstrap", here, "--connect", url)
        _headrace("apply", *asked, "-f", str(file), "--yes")

        # Its worker dies in the middle, and another one goes on.
        workers.wait(lambda: _count(workers, KEPT) > 100, "the first records to arrive")
        status = workers.wait_for_state("dr", "RUNNING")
        owner = status["connector"]["worker_id"]
        (which,) = [at for at, each in enumerate(workers.workers) if each.url.endswith(owner)]
        assert _behind(toml) > 0, "it is killed in the middle, not behind the end"
        workers.kill(which)
        for filler in fillers:
            filler.fill(200)
        workers.wait(lambda: _behind(toml) == 0, "all to be mirrored")
        for topic in (KEPT, LOST):
            compare(there, here, topic, topic)
        assert workers.wait_for_state("dr", "RUNNING")["connector"]["worker_id"] != owner
        assert workers.ask("GET", "/connectors/dr/topics")["dr"]["topics"] == sorted((KEPT, LOST))

        # What is exported changes nothing.
        asked = ("--bootstrap", here, "--connect", workers.workers[0].url)
        exported = tmp_path / "exported.yaml"
        exported.write_text(_headrace("export", *asked, "--connectors", "dr"))
        for each in (exported, file):
            _headrace("apply", *asked, "-f", str(each), "--check")

        _step_aside_and_stand_still(spark, workers, fillers, toml, there, here)


def _step_aside_and_stand_still(
    spark: SparkSession, workers: Workers, fillers: list[Filler], toml: Path, there: str, here: str
) -> None:
    # One that is started by hand shuts the worker's out, which says so, tries again, and loses nothing.
    job.run(spark, config.load(toml), once=True)
    for filler in fillers:
        filler.fill(100)
    workers.wait(lambda: _behind(toml) == 0, "the worker to mirror again")
    for topic in (KEPT, LOST):
        compare(there, here, topic, topic)

    # One topic stands still with its sentence, and the other goes on.
    workers.ask("PUT", "/connectors/dr/stop")
    workers.wait_for_state("dr", "STOPPED")
    ends = _offsets(workers)
    with pytest.raises(HTTPError) as refused:
        workers.ask("DELETE", "/connectors/dr/offsets")
    assert "--accept-loss" in json.loads(refused.value.read())["message"]
    lost_at = ends[LOST, 0]
    for filler in fillers:
        filler.fill(300)
    admin = AdminClient({"bootstrap.servers": there})
    gone = TopicPartition(LOST, 0, lost_at + 3)
    admin.delete_records([gone])[TopicPartition(LOST, 0)].result(30)
    workers.ask("PUT", "/connectors/dr/resume")
    said = workers.wait(lambda: _still(workers), "the worker to say what stands still")
    assert f"{LOST}, partition 0: 3 offsets from {lost_at} on were removed" in said
    assert "This mirror is connector dr: stop it" in said
    kept = len(read(there, KEPT))
    workers.wait(lambda: _count(workers, KEPT) == kept, "the other topic to go on")

    # A person says that the loss is right, for one start, and the worker goes on behind it.
    workers.ask("PUT", "/connectors/dr/stop")
    workers.wait_for_state("dr", "STOPPED")
    job.run(spark, config.load(toml), once=True, accept="earliest")
    workers.ask("PUT", "/connectors/dr/resume")
    fillers[1].fill(50)
    workers.wait(lambda: _behind(toml) == 0, "the topic to go on")
    assert _still(workers) is None
    compare(there, here, KEPT, KEPT)
    assert len(read(here, LOST)) == len({(each.timestamp, each.value) for each in read(here, LOST)})


def _offsets(workers: Workers) -> dict[tuple[str, int], int]:
    found: dict[str, Any] = workers.ask("GET", "/connectors/dr/offsets")
    return {
        (each["partition"]["topic"], each["partition"]["partition"]): each["offset"]["offset"]
        for each in found["offsets"]
    }
