"""A worker whose tasks run on executors of a standalone cluster: another process reads and writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.testing.connect import Workers
from tests.broker_process import BrokerProcess
from tests.spark.standalone import Standalone


@pytest.mark.timeout(900)
def test_tasks_run_on_executors(headrace: BrokerProcess, tmp_path: Path) -> None:
    given = [f"line {number}" for number in range(1000)]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in given))
    with Standalone(tmp_path / "spark", workers=1) as cluster:
        settings = [f"--spark={name}={value}" for name, value in cluster.session_settings().items()]
        arguments = ("--master", cluster.url, *settings)
        with Workers(tmp_path, headrace.bootstrap, arguments=arguments) as workers:
            source = {"connector.class": "file-source", "file": str(tmp_path / "in.txt"), "topic": "far"}
            workers.put("far", {**source, "file.batch.bytes": "4000"})
            sink = {"connector.class": "file-sink", "file": str(tmp_path / "out.txt"), "topics": "far"}
            workers.put("near", sink)
            assert len(workers.wait_for_records("far", len(given))) == len(given)
            out = tmp_path / "out.txt"
            workers.wait(lambda: out.exists() and out.read_text().split("\n")[:-1] == given, "all lines")
            assert cluster.executors()
            assert workers.stop() == 0
