"""The commands against a real broker in this process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.core.build import this_build
from headrace.testing.cluster import Cluster

HEADRACE = [sys.executable, "-c", "from headrace.cli.main import main; main()"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@contextmanager
def started(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Ended with the test, whatever becomes of it: a process that goes on would be waited for without end."""
    command = [*HEADRACE, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        try:
            yield process
        finally:
            process.kill()


Run = Callable[..., Result]


@pytest.fixture
def run(cluster: Cluster) -> Run:
    def invoke(*args: str, stdin: bytes | str | None = None, code: int = 0) -> Result:
        environment = {"HEADRACE_BOOTSTRAP": cluster.bootstrap}
        result = CliRunner().invoke(cli, args, input=stdin, env=environment, prog_name="headrace")
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return invoke


@pytest.fixture
def topic(run: Run, request: pytest.FixtureRequest) -> str:
    """A topic of three partitions, named after the test."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    run("topic", "create", name, "-p", "3")
    return name


def test_create_list_describe_alter_delete(run: Run) -> None:
    made = run("topic", "create", "life", "-p", "2", "-r", "1", "-c", "retention.ms=5000")
    assert made.stdout == "created life partitions=2 replicas=1\n"
    assert "life" in [line.split()[0] for line in run("topic", "list").stdout.splitlines()]
    (described,) = json.loads(run("topic", "describe", "life", "--json").stdout)
    assert described["configs"] == {"retention.ms": "5000"}
    assert [entry["partition"] for entry in described["partitions"]] == [0, 1]
    assert run("topic", "alter", "life", "-p", "4").stdout == "altered life partitions=4\n"
    (described,) = json.loads(run("topic", "describe", "life", "--json").stdout)
    assert len(described["partitions"]) == 4
    assert run("topic", "delete", "life").stdout == "deleted life\n"
    gone = run("topic", "describe", "life", code=1)
    assert "error: topic life does not exist" in gone.stderr
    assert "headrace topic create" in gone.stderr


def test_what_is_there_already(run: Run, topic: str) -> None:
    assert "exists already" in run("topic", "create", topic, code=1).stderr
    assert run("topic", "create", topic, "--if-not-exists").stdout == f"exists {topic}\n"
    assert "does not exist" in run("topic", "delete", "never-made", code=1).stderr
    assert run("topic", "delete", "never-made", "--if-exists").stdout == ""


def test_partitions_are_only_added(run: Run, topic: str) -> None:
    assert "partitions can only be added" in run("topic", "alter", topic, "-p", "1", code=1).stderr


def test_lines_go_in_and_come_out(run: Run, topic: str) -> None:
    sent = run("produce", topic, "-K", ":", "-H", "trace=7", "-z", "lz4", stdin=b"a:1\nb:2\nc\n")
    assert sent.stdout == ""
    assert sent.stderr.startswith(f"sent 3 records to {topic}")
    lines = run("consume", topic, "-e", "-f", "%k=%s %h\\n").stdout.splitlines()
    assert sorted(lines) == ["=c trace=7", "a=1 trace=7", "b=2 trace=7"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec(run: Run, topic: str, codec: str) -> None:
    text = "".join(f"{n}\n" for n in range(1000))
    run("produce", topic, "-z", codec, "-p", "1", stdin=text)
    assert run("consume", topic, "-e", "-p", "1").stdout == text


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks(run: Run, topic: str, acks: str) -> None:
    run("produce", topic, "-a", acks, "-p", "0", stdin="x\n")
    assert run("consume", topic, "-p", "0", "-c", "1").stdout == "x\n"


def test_nulls_and_delimiters(run: Run, topic: str) -> None:
    run("produce", topic, "-Z", "-K", "=", "-D", "|", "-p", "2", stdin="k=|=v|")
    records = [json.loads(line) for line in run("consume", topic, "-e", "--json").stdout.splitlines()]
    assert [(record["key"], record["value"]) for record in records] == [("k", None), (None, "v")]
    assert [record["offset"] for record in records] == [0, 1]


def test_places_to_begin(run: Run, topic: str) -> None:
    run("produce", topic, "-p", "0", stdin="".join(f"{n}\n" for n in range(10)))

    def consumed(*args: str) -> list[str]:
        return run("consume", topic, "-p", "0", "-e", *args).stdout.split()

    assert consumed("-o", "7") == ["7", "8", "9"]
    assert consumed("-o", "-2") == ["8", "9"]
    assert consumed("-o", "-99") == [str(n) for n in range(10)]
    assert consumed("-o", "end") == []
    assert consumed("-o", "beginning", "-c", "2") == ["0", "1"]
    assert consumed("-o", "@0") == [str(n) for n in range(10)]
    assert consumed("-o", "@2100-01-01") == []
    assert "outside the log" in run("consume", topic, "-p", "0", "-o", "99", code=1).stderr


def test_offsets_and_trim(run: Run, topic: str) -> None:
    run("produce", topic, "-p", "1", stdin="a\nb\nc\n")
    shown = run("topic", "offsets", topic).stdout.splitlines()
    assert [line.split() for line in shown[1:]] == [
        ["0", "0", "0", "0"],
        ["1", "0", "3", "3"],
        ["2", "0", "0", "0"],
    ]
    run("topic", "trim", topic, "--to", "2", "-p", "1")
    assert run("consume", topic, "-e").stdout == "c\n"
    assert json.loads(run("topic", "trim", topic, "--to", "end", "--json").stdout)[1] == {
        "topic": topic,
        "partition": 1,
        "earliest": 3,
    }
    assert json.loads(run("topic", "offsets", topic, "-p", "1", "--json").stdout) == [
        {"topic": topic, "partition": 1, "earliest": 3, "latest": 3}
    ]
    assert run("consume", topic, "-e").stdout == ""


def test_topic_settings(run: Run, topic: str) -> None:
    run("config", "set", "--topic", topic, "retention.ms=1234", "cleanup.policy=compact")
    assert run("config", "get", "--topic", topic, "retention.ms").stdout == "1234\n"
    changed = json.loads(run("config", "list", "--topic", topic, "--changed", "--json").stdout)
    assert {entry["name"]: entry["source"] for entry in changed} == {
        "cleanup.policy": "topic",
        "retention.ms": "topic",
    }
    refused = run("produce", topic, stdin="no key\n", code=1)
    assert "-K DELIMITER" in refused.stderr
    run("config", "unset", "--topic", topic, "retention.ms")
    assert run("config", "get", "--topic", topic, "retention.ms").stdout == "604800000\n"
    unknown = run("config", "get", "--topic", topic, "nope", code=1).stderr
    assert "no setting nope" in unknown
    assert f"hint: `headrace config list --topic {topic}` shows all of them" in unknown
    refused = run("config", "set", "--topic", topic, "retention.ms=soon", code=1)
    assert refused.stderr.startswith("error: ")
    assert "hint: `headrace config list` with --topic, --group or --broker shows" in refused.stderr


def test_group_settings(run: Run) -> None:
    interval = "consumer.heartbeat.interval.ms"
    assert run("config", "get", "--group", "readers", interval).stdout == "5000\n"
    assert run("config", "set", "--group", "readers", f"{interval}=7000").stdout == (
        f"set {interval}=7000 of group readers\n"
    )
    (changed,) = json.loads(run("config", "list", "--group", "readers", "--changed", "--json").stdout)
    assert (changed["name"], changed["value"], changed["source"], changed["default"]) == (
        interval,
        "7000",
        "group",
        "5000",
    )
    assert (
        "the brokers allow 5000 to 15000"
        in run("config", "set", "--group", "readers", f"{interval}=1", code=1).stderr
    )
    run("config", "unset", "--group", "readers", interval)
    assert run("config", "get", "--group", "readers", interval).stdout == "5000\n"
    unknown = run("config", "get", "--group", "readers", "nope", code=1).stderr
    assert "hint: `headrace config list --group readers` shows all of them" in unknown


def test_broker_settings(run: Run) -> None:
    names = [entry["name"] for entry in json.loads(run("config", "list", "--broker", "1", "--json").stdout)]
    assert "log.segment.bytes" in names
    run("config", "set", "--broker-default", "log.retention.ms=777")
    assert run("config", "get", "--broker", "1", "log.retention.ms").stdout == "777\n"
    assert "777" in run("config", "list", "--broker-default").stdout
    for whose in (("--broker", "1"), ("--broker-default",)):
        unknown = run("config", "get", *whose, "nope", code=1).stderr
        assert f"hint: `headrace config list {' '.join(whose)}` shows all of them" in unknown
    run("config", "unset", "--broker-default", "log.retention.ms")
    assert "there is no broker 9" in run("config", "list", "--broker", "9", code=1).stderr


def test_unknown_topics_say_what_to_do(run: Run) -> None:
    result = run("consume", "nowhere", code=1)
    assert "error: topic nowhere does not exist" in result.stderr
    assert "hint: " in result.stderr


def test_producing_creates_a_topic_only_where_the_broker_does(run: Run) -> None:
    run("produce", "made-by-producing", stdin="x\n")
    assert run("consume", "made-by-producing", "-e").stdout == "x\n"
    with Cluster({"auto.create.topics.enable": "false"}) as strict:
        result = run("produce", "nowhere", "-b", strict.bootstrap, stdin="x\n", code=1)
    assert "error: topic nowhere does not exist" in result.stderr
    assert "hint: " in result.stderr


def test_a_partition_that_is_not_there(run: Run, topic: str) -> None:
    assert "has no partition 9" in run("produce", topic, "-p", "9", stdin="x\n", code=1).stderr
    assert "has no partition 9" in run("consume", topic, "-p", "9", "-e", code=1).stderr


def test_a_reader_that_has_seen_enough(run: Run, cluster: Cluster, topic: str) -> None:
    run("produce", topic, "-p", "0", stdin="".join(f"{n:0100d}\n" for n in range(5000)))
    with started("consume", topic, "-b", cluster.bootstrap) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().strip() == b"0" * 100
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


def test_following_until_interrupted(run: Run, cluster: Cluster, topic: str) -> None:
    with started("consume", topic, "-b", cluster.bootstrap) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        run("produce", topic, stdin="first\n")
        assert process.stdout.readline() == b"first\n"
        run("produce", topic, stdin="second\n")
        assert process.stdout.readline() == b"second\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize("kept", [True, False])
def test_up_serves_until_it_is_told_to_stop(tmp_path: Path, kept: bool) -> None:
    directory = ["--dir", str(tmp_path / "data")] if kept else []
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with started("up", "--port", "0", *directory, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        ready = process.stdout.readline()
        assert ready.startswith("ready bootstrap=127.0.0.1:")
        bootstrap = ready.strip().removeprefix("ready bootstrap=")
        made = CliRunner().invoke(cli, ["topic", "create", "t", "-b", bootstrap])
        assert made.exit_code == 0, made.output
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == ""
    left = list(tmp_path.iterdir())
    if kept:
        assert left == [tmp_path / "data"]
        assert (tmp_path / "data" / "t-0").is_dir()
    else:
        assert "removed at exit" in err
        assert left == []


def test_a_broker_from_a_properties_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        "# a comment\nbroker.id = 7\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs: /nowhere\nlog.dris=x\n"
    )
    override = f"log.dirs={tmp_path / 'data'}"
    with started("broker", "--config", str(path), "--override", override, text=True) as process:
        assert process.stdout is not None
        bootstrap = process.stdout.readline().strip().removeprefix("ready bootstrap=")
        listed = CliRunner().invoke(cli, ["config", "get", "broker.id", "--broker", "7", "-b", bootstrap])
        assert listed.stdout == "7\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "log.dris" in err
    (ready,) = (line for line in err.splitlines() if '"event": "ready"' in line)
    build = this_build()
    said = json.loads(ready)
    assert (said["version"], said["build"], said["python"]) == (build.version, build.kind, build.python)


def test_a_configuration_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("log.segment.bytes=much\n")
    result = CliRunner().invoke(cli, ["broker", "--config", str(path)])
    assert result.exit_code == 1
    assert "error: log.segment.bytes=much" in result.stderr


def test_a_default_is_told_in_the_unit_of_its_setting(run: Run, topic: str) -> None:
    """Kafka's default of retention.ms is one of log.retention.hours."""
    week = str(7 * 24 * 3_600_000)
    for target in (("--topic", topic), ("--broker-default",)):
        name = "retention.ms" if target[0] == "--topic" else "log.retention.ms"
        run("config", "set", f"{name}=5000", *target)
    (told,) = json.loads(run("config", "list", "--changed", "--topic", topic, "--json").stdout)[-1:]
    assert (told["name"], told["value"], told["default"]) == ("retention.ms", "5000", week)
    (broker,) = json.loads(run("cluster", "status", "--json").stdout)["brokers"]
    told = json.loads(
        run("config", "get", "log.retention.ms", "--broker", str(broker["id"]), "--json").stdout
    )
    assert (told[0]["value"], told[0]["default"]) == ("5000", week)
    run("config", "unset", "log.retention.ms", "--broker-default")
