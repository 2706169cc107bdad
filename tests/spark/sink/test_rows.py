"""What the tasks write is what another client reads: keys, values, headers, times, places, codecs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from headrace.spark.sink import driver
from headrace.spark.sink.decision import SinkFailure
from headrace.spark.sink.options import parse_options
from headrace.spark.sink.task import Place, write
from tests.broker_process import BrokerProcess
from tests.spark.sink.reading import Seen, create, read

Send = Callable[..., None]
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture
def send(broker: BrokerProcess) -> Send:
    """Rows as one committed job."""

    def send(topic: str | None, columns: dict[str, Any], **options: str) -> None:
        given = {"kafka.bootstrap.servers": broker.bootstrap, **({"topic": topic} if topic else {})}
        given |= {name.replace("_", "."): value for name, value in options.items()}
        parsed = parse_options(given, streaming=False)
        plan = asyncio.run(driver.plan(parsed))
        batch = pa.record_batch(columns)
        done = write(
            plan,
            Place(plan.job, "job", task=0, attempt=0, execution=0),
            iter([batch.slice(0, 1), batch.slice(1)]),
        )
        asyncio.run(driver.commit(parsed, [done], 0))

    return send


@pytest.fixture
def topic(broker: BrokerProcess, new_topic: Callable[[], str]) -> str:
    name = new_topic()
    create(broker.bootstrap, name, 4)
    return name


def _contents(seen: list[Seen]) -> list[tuple[Any, ...]]:
    return sorted((each.key, each.value, each.headers) for each in seen)


def test_every_column_arrives(broker: BrokerProcess, send: Send, topic: str) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
    send(
        topic,
        {
            "key": pa.array([b"a", b"b", None, b""], pa.binary()),
            "value": pa.array(["text", None, "", "ü"], pa.string()),
            "headers": pa.array(
                [
                    [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
                    [],
                    None,
                    [{"key": "", "value": b""}],
                ],
                _HEADERS,
            ),
            "partition": pa.array([3, 2, 1, None], pa.int32()),
            "timestamp": pa.array([moment] * 4, pa.timestamp("us", "UTC")),
        },
    )
    seen = {each.key: each for each in read(broker.bootstrap, topic)}
    assert seen[b"a"].value == b"text"
    assert seen[b"a"].headers == (("h", b"1"), ("h", None))
    assert (seen[b"b"].value, seen[b"b"].headers) == (None, ())
    assert (seen[None].value, seen[None].headers) == (b"", ())
    assert (seen[b""].value, seen[b""].headers) == ("ü".encode(), (("", b""),))
    assert (seen[b"a"].partition, seen[b"b"].partition, seen[None].partition) == (3, 2, 1)
    assert {each.timestamp for each in seen.values()} == {int(moment.timestamp() * 1000)}


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_other_clients_open_every_codec(broker: BrokerProcess, send: Send, topic: str, codec: str) -> None:
    values = [f"value {number}" for number in range(3000)]
    send(topic, {"value": pa.array(values, pa.string())}, compression=codec)
    assert sorted((each.value or b"").decode() for each in read(broker.bootstrap, topic)) == sorted(values)


def test_rows_name_their_topics(
    broker: BrokerProcess, send: Send, topic: str, new_topic: Callable[[], str]
) -> None:
    other = new_topic()
    create(broker.bootstrap, other, 1)
    names = [topic, other, topic, other, other]
    columns = {"topic": pa.array(names), "value": pa.array([str(number) for number in range(5)])}
    send(None, columns)
    assert sorted(each.value or b"" for each in read(broker.bootstrap, topic)) == [b"0", b"2"]
    assert [each.value for each in read(broker.bootstrap, other)] == [b"1", b"3", b"4"]


def test_rows_without_a_key_are_spread_and_rows_of_a_partition_keep_their_order(
    broker: BrokerProcess, send: Send, topic: str
) -> None:
    values = [b"%05d" % number for number in range(5000)]
    send(topic, {"value": pa.array(values, pa.binary())}, batch_bytes="20000")
    seen = read(broker.bootstrap, topic)
    assert sorted(each.value or b"" for each in seen) == values
    for partition in range(4):
        mine = [each.value or b"" for each in seen if each.partition == partition]
        assert len(mine) > 500
        assert mine == sorted(mine)


def test_large_rows_arrive(broker: BrokerProcess, send: Send, topic: str) -> None:
    values = [bytes([number]) * 600_000 for number in range(5)]
    send(topic, {"value": pa.array(values, pa.binary())})
    assert sorted(each.value or b"" for each in read(broker.bootstrap, topic)) == values


def test_a_partition_that_does_not_exist_is_named(broker: BrokerProcess, send: Send, topic: str) -> None:
    with pytest.raises(SinkFailure, match="4 partitions; a row wants partition 7"):
        send(topic, {"value": pa.array(["x"]), "partition": pa.array([7], pa.int32())})
    assert read(broker.bootstrap, topic) == []


def test_a_task_that_fails_aborts_what_it_wrote(broker: BrokerProcess, topic: str) -> None:
    parsed = parse_options(
        {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "batch.bytes": "1000"}, streaming=False
    )
    plan = asyncio.run(driver.plan(parsed))

    def rows() -> Any:
        for _ in range(30):
            yield pa.record_batch({"value": pa.array([b"x" * 1000] * 200, pa.binary())})
        raise RuntimeError("the input breaks")

    with pytest.raises(RuntimeError, match="the input breaks"):
        write(plan, Place(plan.job, "job", task=0, attempt=0, execution=0), rows())
    assert read(broker.bootstrap, topic) == []
    assert read(broker.bootstrap, topic, committed=False)
