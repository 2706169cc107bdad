"""Workers as real processes with a real Spark: killed in the middle, and told to pause, stop and go back.

Both connectors are those of files, so what came through can be compared line by line. The topic is read by
librdkafka, the file by nobody's code but `open`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from click.testing import CliRunner

from headrace.cli.connect import connect
from headrace.cli.connect_init import init
from headrace.client.errors import ClientFailure
from headrace.testing.connect import Workers
from tests.broker_process import BrokerProcess
from tests.spark.sink.reading import read

pytestmark = pytest.mark.timeout(1200)

LINES = 4_000
BATCH_BYTES = 8_000
NUMBERS = 1_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("connect")


@pytest.fixture(scope="module")
def workers(headrace: BrokerProcess, folder: Path) -> Iterator[Workers]:
    """They also have the connector that `headrace connect init` writes."""
    own = folder / "my_connector"
    assert CliRunner().invoke(init, [str(own)]).exit_code == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(own))
        connectors = {"my-connector": "my_connector:Numbers"}
        with Workers(folder, headrace.bootstrap, connectors, workers=2) as made:
            yield made


def _source(folder: Path, topic: str, name: str = "in.txt") -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "file": str(folder / name),
        "topic": topic,
        "file.batch.bytes": str(BATCH_BYTES),
    }


def _sink(folder: Path, topic: str, name: str = "out.txt") -> dict[str, str]:
    return {
        "connector.class": "FileStreamSink",
        "file": str(folder / name),
        "topics": topic,
        "batch.max.records": "500",
        "poll.interval.ms": "100",
    }


def _to_directory(folder: Path, topic: str) -> dict[str, str]:
    return {
        "connector.class": "directory-sink",
        "location": str(folder / "files"),
        "format": "text",
        "topics": topic,
        "batch.max.records": "500",
        "batch.linger.ms": "0",
        "poll.interval.ms": "100",
    }


def _from_directory(folder: Path, topic: str) -> dict[str, str]:
    return {
        "connector.class": "directory-source",
        "location": str(folder / "files"),
        "format": "text",
        "topic": topic,
        "file.quiet.ms": "0",
        "poll.interval.ms": "100",
        "files.after.reading": "delete",
    }


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_a_worker_is_killed_in_the_middle_and_nothing_is_lost_or_doubled(
    workers: Workers, folder: Path, headrace: BrokerProcess
) -> None:
    given = [f"line {number:05d} {'x' * (number % 40)}" for number in range(LINES)]
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in given))
    workers.put("lines", _source(folder, "lines"))
    workers.put("copy", _sink(folder, "lines"))
    workers.put("to-files", _to_directory(folder, "lines"))
    workers.put("from-files", _from_directory(folder, "again"))
    numbers = {"connector.class": "my-connector", "topic": "numbers", "up.to": str(NUMBERS)}
    workers.put("numbers", numbers)
    workers.wait(lambda: len(_lines(folder / "out.txt")) > 200, "the first lines to arrive")
    status = workers.status("lines")
    assert status is not None
    owner = status["connector"]["worker_id"]
    (which,) = [index for index, each in enumerate(workers.workers) if each.url.endswith(owner)]
    assert len(_lines(folder / "out.txt")) < LINES, "it is killed in the middle, not behind the end"
    workers.kill(which)
    workers.wait(lambda: len(_lines(folder / "out.txt")) >= LINES, "all lines to arrive")
    copied = Counter((each.value or b"").decode() for each in read(headrace.bootstrap, "lines"))
    assert copied == Counter(given), "the topic has every line once"
    workers.wait(lambda: _lines(folder / "out.txt") == given, "the file to have every line once, in order")
    counted = [int(each.value or b"") for each in workers.wait_for_records("numbers", NUMBERS)]
    assert sorted(counted) == list(range(NUMBERS)), "so has the connector of one's own"
    again = Counter((each.value or b"").decode() for each in workers.wait_for_records("again", LINES))
    assert again == Counter(given), "so has the topic that was a directory of files in between"
    survivor = workers.wait_for_state("lines", "RUNNING")["connector"]["worker_id"]
    assert survivor != owner


def test_what_is_paused_waits_and_what_is_stopped_can_go_back(workers: Workers, folder: Path) -> None:
    source = folder / "more.txt"
    source.write_text("a\nb\n")
    workers.put("more", _source(folder, "more", "more.txt"))
    assert len(workers.wait_for_records("more", 2)) == 2
    with pytest.raises(HTTPError) as refused:
        workers.ask("DELETE", "/connectors/more/offsets")
    assert refused.value.code == 400

    workers.ask("PUT", "/connectors/more/pause")
    workers.wait_for_state("more", "PAUSED")
    with source.open("a") as file:
        file.write("c\n")
    workers.ask("PUT", "/connectors/more/resume")
    assert [each.value for each in workers.wait_for_records("more", 3)] == [b"a", b"b", b"c"]

    workers.ask("PUT", "/connectors/more/stop")
    assert workers.wait_for_state("more", "STOPPED")["tasks"] == []
    where = {"filename": str(source)}
    assert workers.ask("GET", "/connectors/more/offsets") == {
        "offsets": [{"partition": where, "offset": {"position": 6}}]
    }
    workers.ask(
        "PATCH", "/connectors/more/offsets", {"offsets": [{"partition": where, "offset": {"position": 4}}]}
    )
    workers.ask("PUT", "/connectors/more/resume")
    assert [each.value for each in workers.wait_for_records("more", 4)] == [b"a", b"b", b"c", b"c"]
    assert workers.ask("GET", "/connectors/more/topics") == {"more": {"topics": ["more"]}}


def test_what_fails_says_why_and_goes_on_by_itself(workers: Workers, folder: Path) -> None:
    source = folder / "cut.txt"
    source.write_text("a\nb\nc\n")
    config = _source(folder, "cut", "cut.txt") | {"password": "hunter22", "poll.interval.ms": "50"}
    workers.put("cut", config)
    workers.wait_for_records("cut", 3)
    source.write_text("a\n")

    def failed() -> str | None:
        status = workers.status("cut")
        states = [] if status is None else status["tasks"]
        return states[0].get("trace") if states and states[0]["state"] == "FAILED" else None

    trace = workers.wait(failed, "the source to notice that its file is shorter")
    assert "was cut or replaced" in trace
    assert "the next is at" in trace
    assert workers.ask("GET", "/connectors/cut/config")["password"] == "[hidden]"
    source.write_text("a\nb\nc\nd\n")
    workers.wait_for_state("cut", "RUNNING")
    assert [each.value for each in workers.wait_for_records("cut", 4)] == [b"a", b"b", b"c", b"d"]


def test_people_have_commands_for_it(workers: Workers, folder: Path) -> None:
    url = workers.workers[-1].url

    def run(*arguments: str) -> Any:
        done = CliRunner().invoke(connect, [*arguments[:1], "--url", url, *arguments[1:]])
        assert done.exit_code == 0, done.output
        return done.output

    (folder / "few.txt").write_text("a\n")
    file = folder / "few.json"
    file.write_text(json.dumps({"name": "few", "config": _source(folder, "few", "few.txt")}))
    run("create", "-f", str(file))
    workers.wait_for_records("few", 1)
    assert json.loads(run("list", "-o", "json"))["few"]["info"]["type"] == "source"
    assert "few" in run("list")
    run("stop", "few")
    workers.wait_for_state("few", "STOPPED")
    assert "STOPPED" in run("status", "few")
    assert json.loads(run("offsets", "few", "--json"))["offsets"][0]["offset"] == {"position": 2}
    assert "reset successfully" in run("offsets", "few", "--reset")
    run("resume", "few")
    workers.wait_for_records("few", 2)
    assert "FileSource" in run("plugins")
    assert "file.batch.bytes" in run("plugins", "FileStreamSource")
    run("delete", "few", "--yes")
    refused = CliRunner().invoke(connect, ["status", "few", "--url", url], standalone_mode=False)
    assert isinstance(refused.exception, ClientFailure)


def test_it_ends_by_itself_when_its_spark_is_dead_and_as_it_is_asked_to(workers: Workers) -> None:
    first, *_ = workers.workers
    first.kill_spark()
    assert workers.ended() == 1
    assert "Spark's Java process has ended (-9)" in first.log()
    workers.add()
    assert workers.stop(-1) == 0
