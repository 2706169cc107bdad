"""`headrace consume --group`, and the member behind it beside librdkafka's."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer

from headrace.client.cluster import Cluster as Client
from headrace.client.group_consumer import GroupConsumer
from headrace.client.group_offsets import committed_offsets
from headrace.client.start import parse_start
from headrace.core.ids import TopicPartition
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
    """Two partitions of five records each, named after the test."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    real_client.create(bootstrap, name, 2)
    for partition in range(2):
        values = [b"%d.%d" % (partition, n) for n in range(5)]
        real_client.send(bootstrap, name, values, partition=partition)
    return name


def test_each_record_is_printed_once_by_a_group(run: Run, topic: str) -> None:
    read = ("consume", topic, "--group", "printers", "--exit")
    first = run(*read, "--count", "3").stdout.split()
    assert len(first) == 3
    (told,) = json.loads(run("group", "describe", "printers", "--json").stdout)
    assert (told["state"], told["members"]) == ("Empty", [])
    rest = run(*read).stdout.split()
    assert sorted(first + rest) == sorted(f"{p}.{n}" for p in range(2) for n in range(5))
    assert run(*read).stdout == ""
    (told,) = json.loads(run("group", "lag", "printers", "--json").stdout)
    assert [entry["committed"] for entry in told["partitions"]] == [5, 5]


def test_a_group_begins_where_it_is_told(run: Run, topic: str) -> None:
    read = ("consume", topic, "-g", "beginners", "--exit", "-o", "end")
    assert run(*read).stdout == ""
    run("produce", topic, "-p", "1", stdin="late\n")
    assert run(*read).stdout == "late\n"
    assert "leave --partition out" in run(*read, "-p", "0", code=2).stderr
    assert "does not exist" in run("consume", "nowhere", "-g", "beginners", code=1).stderr


def member_of(client: Client, group: str, topic: str) -> GroupConsumer:
    return GroupConsumer(client, group, [topic], start=parse_start("beginning"), session_timeout_ms=6000)


def test_two_members_share_and_one_takes_over(bootstrap: str, topic: str) -> None:
    async def work() -> None:
        async with (
            asyncio.timeout(SECONDS),
            Client(bootstrap) as client,
            # A connection each: a join holds up whatever else is asked over the same one.
            Client(bootstrap) as other_client,
        ):
            async with member_of(client, "pair", topic) as one:
                for fetched in await one.poll():
                    one.processed(fetched.partition, 1)
                assert len(one.assigned) == 2
                async with member_of(other_client, "pair", topic) as two:
                    joining = asyncio.create_task(two.poll())
                    while not joining.done() or len(one.assigned) == 2:
                        await one.poll()
                    await joining
                    both = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
                    assert sorted(one.assigned + two.assigned) == both
                while len(one.assigned) == 1:
                    await one.poll()
            committed = await committed_offsets(client, ["pair"])
            assert {entry.offset for entry in committed["pair"].values()} == {1}

    asyncio.run(work())


def test_a_member_gets_along_with_librdkafka(bootstrap: str, topic: str) -> None:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "mixed",
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": "range",
        "heartbeat.interval.ms": 200,
        "session.timeout.ms": 6000,
    }

    async def join_and_read(other: Consumer) -> set[int]:
        async with Client(bootstrap) as client, member_of(client, "mixed", topic) as member:
            deadline = time.monotonic() + SECONDS
            polling = asyncio.create_task(member.poll())
            while len(member.assigned) != 1 or len(other.assignment()) != 1:
                assert time.monotonic() < deadline
                await asyncio.to_thread(other.poll, 0.1)
                if polling.done():
                    polling = asyncio.create_task(member.poll())
            await polling
            return {partition.partition for partition in member.assigned}

    with closing(Consumer(settings)) as other:
        other.subscribe([topic])
        deadline = time.monotonic() + SECONDS
        while len(other.assignment()) != 2:
            assert time.monotonic() < deadline
            other.poll(0.1)
        mine = asyncio.run(join_and_read(other))
        assert mine | {partition.partition for partition in other.assignment()} == {0, 1}
