"""`headrace group ...` against a real broker, with librdkafka's consumers as members."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.integration import real_client
from tests.integration.either_broker import either_broker
from tests.unit.cli.serving import Run, runner

SECONDS = 30.0


@pytest.fixture(scope="module")
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with either_broker(request, tmp_path_factory, {"group.initial.rebalance.delay.ms": "0"}) as address:
        yield address


@pytest.fixture
def run(bootstrap: str) -> Run:
    return runner(bootstrap)


@pytest.fixture
def topic(bootstrap: str, request: pytest.FixtureRequest) -> str:
    """Two partitions of ten records each, named after the test."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    real_client.create(bootstrap, name, 2)
    for partition in range(2):
        real_client.send(bootstrap, name, [b"v%d" % n for n in range(10)], partition=partition)
    return name


def consumer(bootstrap: str, group: str, **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": f"client-of-{group}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def read(reader: Consumer, count: int) -> None:
    deadline = time.monotonic() + SECONDS
    while count:
        assert time.monotonic() < deadline, f"{count} records did not come"
        message = reader.poll(0.2)
        if message is not None and message.error() is None:
            count -= 1


def commit(bootstrap: str, group: str, topic: str, offsets: dict[int, int]) -> None:
    """From outside, as a consumer does that was assigned by hand."""
    with closing(consumer(bootstrap, group)) as writer:
        writer.commit(
            offsets=[TopicPartition(topic, index, offset) for index, offset in offsets.items()],
            asynchronous=False,
        )


def lag_of(run: Run, group: str) -> dict[int, Any]:
    (told,) = json.loads(run("group", "lag", group, "--json").stdout)
    return {entry["partition"]: entry for entry in told["partitions"]}


def test_a_group_while_it_reads_and_after(bootstrap: str, run: Run, topic: str) -> None:
    with closing(consumer(bootstrap, "readers")) as reader:
        reader.subscribe([topic])
        read(reader, 20)
        reader.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
        listed = {entry["group"]: entry for entry in json.loads(run("group", "list", "--json").stdout)}
        assert listed["readers"]["state"] == "Stable"
        assert listed["readers"]["type"] == "classic"
        assert listed["readers"]["members"] == 1
        (told,) = json.loads(run("group", "describe", "readers", "--json").stdout)
        (member,) = told["members"]
        assert member["client"] == "client-of-readers"
        assert member["host"] == "127.0.0.1"
        assert member["assigned"] == {topic: [0, 1]}
        assert told["assignor"] == "range"
        lags = lag_of(run, "readers")
        assert (lags[0]["committed"], lags[0]["high_watermark"], lags[0]["lag"]) == (4, 10, 6)
        assert lags[0]["client"] == "client-of-readers"
        assert (lags[1]["committed"], lags[1]["lag"]) == (None, 10)
        refused = run("group", "reset", "readers", "--to-latest", "--execute", code=1).stderr
        assert "client-of-readers on 127.0.0.1" in refused
        assert "has members" in run("group", "delete", "readers", code=1).stderr
        assert "are subscribed to" in run("group", "delete-offsets", "readers", "-t", topic, code=1).stderr
    assert "nobody reads" in run("group", "lag", "readers").stdout
    assert run("group", "delete", "readers").stdout == "deleted readers\n"
    assert "does not exist" in run("group", "describe", "readers", code=1).stderr


def test_resets_move_what_a_consumer_reads_next(bootstrap: str, run: Run, topic: str, tmp_path: Path) -> None:
    commit(bootstrap, "movers", topic, {0: 7, 1: 2})
    kept = tmp_path / "kept.csv"
    run("group", "reset", "movers", "--to-current", "--to-file", str(kept))
    assert kept.read_text() == f"{topic},0,7\n{topic},1,2\n"
    plan = run("group", "reset", "movers", "--to-latest")
    assert "nothing was changed" in plan.stderr
    assert lag_of(run, "movers")[0]["committed"] == 7
    run("group", "reset", "movers", "--to-latest", "--execute")
    assert [entry["lag"] for entry in lag_of(run, "movers").values()] == [0, 0]
    run("group", "reset", "movers", "--shift-by", "-3", "-t", f"{topic}:0", "--execute")
    assert [entry["lag"] for entry in lag_of(run, "movers").values()] == [3, 0]
    with closing(consumer(bootstrap, "movers")) as reader:
        reader.subscribe([topic])
        read(reader, 3)
        assert reader.position([TopicPartition(topic, 0)])[0].offset == 10
    run("group", "reset", "movers", "--from-file", str(kept), "--execute")
    assert [entry["committed"] for entry in lag_of(run, "movers").values()] == [7, 2]


def test_resets_by_time(bootstrap: str, run: Run, topic: str) -> None:
    now_ms = time.time_ns() // 1_000_000
    real_client.send(bootstrap, topic, [b"old"], timestamp=now_ms - 7_200_000)
    real_client.send(bootstrap, topic, [b"new"], timestamp=now_ms + 3_600_000)
    commit(bootstrap, "times", topic, {0: 0})
    run("group", "reset", "times", "--to-datetime", str(now_ms + 1), "--execute")
    assert lag_of(run, "times")[0]["committed"] == 11
    run("group", "reset", "times", "--by-duration", "1h", "--execute")
    assert lag_of(run, "times")[0]["committed"] == 0


def test_offsets_of_a_new_group_and_their_end(run: Run, topic: str) -> None:
    run("group", "reset", "made", "--to-offset", "5", "-t", topic, "--execute")
    assert [entry["lag"] for entry in lag_of(run, "made").values()] == [5, 5]
    assert run("group", "delete-offsets", "made", "-t", f"{topic}:1").stdout == f"deleted {topic}-1\n"
    assert list(lag_of(run, "made")) == [0]
    assert run("group", "delete", "made", "nobody", code=1).stdout == "deleted made\n"


def test_records_that_retention_took_are_said_to_be_missed(bootstrap: str, run: Run, topic: str) -> None:
    commit(bootstrap, "late", topic, {0: 1})
    run("topic", "trim", topic, "--to", "4", "-p", "0")
    assert (
        f"{topic}-0: 3 records were removed before the group read them" in run("group", "lag", "late").stdout
    )
    plan = run("group", "reset", "late", "--to-earliest")
    assert plan.stdout.splitlines()[1].split() == [topic, "0", "1", "4", "+3", "4", "10", "6"]


def test_what_was_never_committed_is_in_the_total(bootstrap: str, run: Run, topic: str) -> None:
    with closing(consumer(bootstrap, "half")) as reader:
        reader.subscribe([topic])
        read(reader, 20)
        reader.commit(offsets=[TopicPartition(topic, 0, 10)], asynchronous=False)
        (told,) = json.loads(run("group", "lag", "half", "--json").stdout)
        assert (told["total_lag"], told["without_commit"]) == (10, 10)
    (told,) = json.loads(run("group", "lag", "half", "--json").stdout)  # also when nobody owns it any more
    assert (told["state"], told["total_lag"], told["without_commit"]) == ("Empty", 10, 10)
    assert [entry["committed"] for entry in told["partitions"]] == [10, None]
    # Who assigns partitions to itself may leave others alone.
    commit(bootstrap, "by-hand", topic, {0: 4})
    (told,) = json.loads(run("group", "lag", "by-hand", "--json").stdout)
    assert (told["total_lag"], len(told["partitions"])) == (6, 1)
