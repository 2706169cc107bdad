"""`headrace lake` as people use it: a process that runs, is asked how far it is, and is told to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from headrace.cli.main import cli
from tests.broker_process import HEADRACE, BrokerProcess
from tests.spark.shared_classes import short_lived

_CONFIG = """
[kafka]
"bootstrap.servers" = "{bootstrap}"
[lake]
format = "parquet"
location = "lake"
trigger = "200ms"
[[topics]]
name = "{topic}"
format = "json"
schema = "id int"
[[topics]]
name = "{topic}-later"
[spark]
master = "local[2]"
spark.ui.enabled = false
spark.driver.host = "127.0.0.1"
spark.driver.bindAddress = "127.0.0.1"
spark.driver.extraJavaOptions = "{java_options}"
"""


def status(path: Path) -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["lake", "status", "--config", str(path), "--json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def test_a_lake_runs_is_asked_and_ends(
    spark: SparkSession,
    headrace: BrokerProcess,
    new_topic: Callable[[], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headrace.spark.lake.status._PATIENCE_SECONDS", 60.0)
    topic = new_topic()
    path = tmp_path / "lake.toml"
    path.write_text(_CONFIG.format(bootstrap=headrace.bootstrap, topic=topic, java_options=short_lived()))
    produce(headrace.bootstrap, topic, [b'{"id": 1}', b'{"id": 2}', b"{"])
    before = status(path)
    assert before["absent"] == [f"{topic}-later"]
    assert (before["topics"][0]["loaded"], before["topics"][0]["lag"]) == (0, 3)
    assert 0 <= before["topics"][0]["lag_ms"] < 600_000

    output = tmp_path / "output"
    with output.open("w") as file:
        process = subprocess.Popen(
            [str(HEADRACE), "lake", "run", "--config", str(path), "--json"],
            stdout=file,
            stderr=subprocess.STDOUT,
            env=dict(os.environ),
        )
        try:
            deadline = time.monotonic() + 480
            while status(path)["topics"][0]["lag"]:
                assert process.poll() is None, output.read_text()[-4000:]
                assert time.monotonic() < deadline, output.read_text()[-4000:]
                time.sleep(1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0, output.read_text()[-4000:]
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    (after,) = status(path)["topics"]
    assert (after["loaded"], after["lag"], after["lag_ms"], after["batch"]) == (3, 0, 0, 0)
    assert after["rate"] > 0
    assert after["error"] is None
    rows = spark.read.parquet(f"{tmp_path}/lake/{topic}").collect()
    assert sorted(row.id for row in rows) == [1, 2]
    said = output.read_text()
    assert f"waiting for {topic}-later to be created" in said
    (done,) = json.loads(said[said.index("[\n") :])
    assert [batch["records"] for batch in done["batches"]] == [3]
