"""The doctor's round trip: through a real Spark and a real broker, and what it says if something is wrong."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.client.cluster import Cluster
from headrace.client.topics import list_topics
from headrace.spark import doctor, jars
from tests.broker_process import BrokerProcess
from tests.ports import own_port


def ask(bootstrap: str) -> Result:
    return CliRunner().invoke(cli, ["spark", "doctor", "--json", "--bootstrap", bootstrap])


@pytest.fixture
def patient_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the trip finds is the subject, not how long it takes."""
    monkeypatch.setattr(doctor, "ROUND_TRIP_SECONDS", 580.0)


def topics(bootstrap: str) -> list[str]:
    async def listed() -> list[str]:
        async with Cluster(bootstrap) as cluster:
            return [topic.name for topic in await list_topics(cluster)]

    return asyncio.run(listed())


@pytest.mark.usefixtures("patient_doctor")
def test_a_round_trip_goes_through_everything_and_leaves_no_topic(headrace: BrokerProcess) -> None:
    result = ask(headrace.bootstrap)
    document = json.loads(result.stdout)
    assert result.exit_code == 0, document
    told = {finding["subject"]: finding["found"] for finding in document["findings"]}
    assert told["brokers"] == f"1 at {headrace.bootstrap}"
    assert told["topic"].startswith("100 of 100 records written and read")
    assert told["delta"].startswith("100 of 100 rows")
    assert told["iceberg"].startswith("100 of 100 rows")
    assert not [name for name in topics(headrace.bootstrap) if name.startswith("headrace-doctor")]


def test_no_broker_is_told_with_what_to_do() -> None:
    result = ask(f"127.0.0.1:{own_port()}")
    assert result.exit_code == 1
    last = json.loads(result.stdout)["findings"][-1]
    assert (last["subject"], last["ok"]) == ("brokers", False)
    assert "headrace up" in last["advice"]


@pytest.mark.usefixtures("patient_doctor")
def test_jars_that_hold_nothing_are_found_by_the_trip(
    apache_kafka: BrokerProcess, spark_jars: Path, tmp_path: Path
) -> None:
    """A file of the right name passes the first look; a session shows that the connector is not in it.

    On Apache Kafka: what the doctor itself asks of a broker is to make a topic and to take it away again.
    """
    for jar in jars.needed():
        (tmp_path / jar.file_name).symlink_to(spark_jars / jar.file_name)
    connector = next(jar for jar in jars.needed() if jar.artifact.startswith("spark-sql-kafka"))
    other = next(jar for jar in jars.needed() if jar.artifact == "commons-pool2")
    (tmp_path / connector.file_name).unlink()
    (tmp_path / connector.file_name).symlink_to(spark_jars / other.file_name)
    findings = list(doctor.examine(jar_directory=tmp_path, bootstrap=apache_kafka.bootstrap))
    told = {finding.subject: finding.found for finding in findings}
    assert told["brokers"] == f"1 at {apache_kafka.bootstrap}"
    assert [finding.subject for finding in findings if not finding.ok] == ["topic"]
    assert "kafka" in findings[-1].found.lower()
    assert not [name for name in topics(apache_kafka.bootstrap) if name.startswith("headrace-doctor")]


def test_a_trip_that_does_not_end_is_ended(
    headrace: BrokerProcess, spark_jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "ROUND_TRIP_SECONDS", 0.5)
    monkeypatch.setattr(doctor, "_PARTING_SECONDS", 2.0)  # a JVM that has hardly begun does not listen
    last = list(doctor.examine(jar_directory=spark_jars, bootstrap=headrace.bootstrap))[-1]
    assert (last.subject, last.ok, last.found) == ("round trip", False, "did not end within 0.5 s")


def test_a_java_that_outlives_its_python_does_not_hold_the_doctor(
    headrace: BrokerProcess, spark_jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the pipe that the doctor reads, and takes no notice of a parent that is gone."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "17.0.1"\' >&2 && exit\nexec sleep 300\n'
    )
    java.chmod(0o755)
    monkeypatch.setattr(doctor, "ROUND_TRIP_SECONDS", 3.0)
    monkeypatch.setattr(doctor, "_PARTING_SECONDS", 1.0)
    began = time.monotonic()
    environ = os.environ | {"JAVA_HOME": str(tmp_path)}
    *_, last = doctor.examine(jar_directory=spark_jars, bootstrap=headrace.bootstrap, environ=environ)
    assert (last.subject, last.found) == ("round trip", "did not end within 3 s")
    assert time.monotonic() - began < 60
