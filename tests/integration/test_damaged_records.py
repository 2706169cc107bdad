"""Damage on a broker that is alone: nobody else has the records, so the rest of them is served."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, TopicPartition

from headrace.cli.main import cli
from headrace.client.cluster import Cluster as Client
from headrace.client.consumer import Consumer as OwnConsumer
from headrace.client.errors import Refused
from headrace.core.ids import TopicPartition as Partition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.fetch_response import FetchResponse
from headrace.testing.cluster import Cluster
from tests.integration.real_client import create, send_all
from tests.wire import Wire

TOPIC = "orders"
VALUES = [b"%d:" % number + b"x" * 1000 for number in range(2500)]
BATCHED = {"batch.num.messages": "50", "linger.ms": "20"}


def fetched(cluster: Cluster, offset: int) -> int:
    """The error of a fetch from `offset` on."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic=TOPIC, partitions=[partition])]
    )
    with Wire(int(cluster.bootstrap.rpartition(":")[2])) as wire:
        answer = wire.ask(request, 11, FetchResponse)
    return int(answer.responses[0].partitions[0].error_code)


def read_from(cluster: Cluster, offset: int, count: int) -> list[tuple[int, bytes | None]]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "none", "enable.auto.commit": False}
    )
    found: list[tuple[int, bytes | None]] = []
    with closing(consumer):
        consumer.assign([TopicPartition(TOPIC, 0, offset)])
        deadline = time.monotonic() + 60
        while len(found) < count and time.monotonic() < deadline:
            for message in consumer.consume(count - len(found), 0.2):
                assert message.error() is None
                at = message.offset()
                assert at is not None
                found.append((at, message.value()))
    return found


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """The directory of a broker that is stopped: two partitions, in the first record 500 is zeroed."""
    with Cluster(directory=tmp_path) as cluster:
        create(cluster.bootstrap, TOPIC, 2, config={"segment.bytes": str(1 << 20)})
        for partition in (0, 1):
            send_all(cluster.bootstrap, TOPIC, VALUES, settings=BATCHED, partition=partition)
    first = sorted(tmp_path.rglob(f"{TOPIC}-0/*.log"))[0]
    content = bytearray(first.read_bytes())
    at = content.index(b"500:" + b"x" * 100) + 20
    content[at : at + 512] = bytes(512)
    first.write_bytes(content)
    return tmp_path


def headrace(cluster: Cluster, *args: str) -> Result:
    return CliRunner().invoke(cli, args, env={"HEADRACE_BOOTSTRAP": cluster.bootstrap}, prog_name="headrace")


def test_the_status_names_what_cannot_be_read_until_it_is_deleted(damaged: Path) -> None:
    with Cluster(directory=damaged) as cluster:
        assert headrace(cluster, "cluster", "status").exit_code == 0, "nobody has read it yet"
        assert fetched(cluster, 500) == ErrorCode.KAFKA_STORAGE_ERROR
        seen = headrace(cluster, "cluster", "status")
        assert seen.exit_code == 3
        assert seen.stdout.startswith("unreadable")
        (offsets,) = re.findall(rf"broker 1: {TOPIC}-0 offsets (\d+) to (\d+)\n", seen.stdout)
        assert int(offsets[0]) <= 500 <= int(offsets[1])
        assert "next: stop that broker and run `headrace log verify DIRECTORY`" in seen.stdout
        assert headrace(cluster, "cluster", "status", "--wait", "0").exit_code == 3
        behind = str(int(offsets[1]) + 1)
        assert headrace(cluster, "topic", "trim", TOPIC, "-p", "0", "--to", behind).exit_code == 0
        seen = headrace(cluster, "cluster", "status")
        assert (seen.exit_code, seen.stdout.partition(" ")[0]) == (0, "healthy")


def test_what_is_damaged_keeps_nobody_from_the_other_partitions(damaged: Path) -> None:
    async def count_into(counts: dict[int, int], consumer: OwnConsumer) -> None:
        while True:
            for each in await consumer.poll():
                counts[each.partition.partition] += len(each.records)

    async def read_all(bootstrap: str) -> dict[int, int]:
        counts = {0: 0, 1: 0}
        async with Client(bootstrap) as client:
            consumer = OwnConsumer(client, {Partition(TOPIC, index): 0 for index in counts}, patience=0.5)
            with pytest.raises(Refused, match="damaged"):
                await count_into(counts, consumer)
            await consumer.close()
        return counts

    with Cluster(directory=damaged) as cluster:
        counts = asyncio.run(read_all(cluster.bootstrap))
    assert counts[1] == len(VALUES)
    assert 0 < counts[0] <= 500


def test_a_damaged_range_is_refused_and_everything_else_is_served(damaged: Path) -> None:
    with Cluster(directory=damaged) as cluster:
        assert fetched(cluster, 500) == ErrorCode.KAFKA_STORAGE_ERROR
        assert fetched(cluster, 500) == ErrorCode.KAFKA_STORAGE_ERROR, "it stays so"
        assert fetched(cluster, 0) == ErrorCode.NONE
        before = read_from(cluster, 0, 450)
        assert before == list(enumerate(VALUES))[:450]
        behind = read_from(cluster, 551, len(VALUES) - 551)
        assert behind == list(enumerate(VALUES))[551:]
        send_all(cluster.bootstrap, TOPIC, [b"more"], settings=BATCHED, partition=0)
        assert read_from(cluster, len(VALUES), 1) == [(len(VALUES), b"more")]
