"""Classic groups with real clients: librdkafka, kafka-python and aiokafka subscribe to one broker."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from headrace.testing.cluster import Cluster
from tests.compatibility.members.kafka_python import know_the_partitions
from tests.integration import real_client

with warnings.catch_warnings():
    # The library reads its schemas by a function that Python has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer
    from kafka.errors import CommitFailedError, RebalanceInProgressError

PARTITIONS = 6
PER_PARTITION = 5
SECONDS = 30.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(
        {"group.initial.rebalance.delay.ms": "100", "group.min.session.timeout.ms": "1000"}
    ) as running:
        yield running


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    real_client.create(cluster.bootstrap, name, PARTITIONS)
    for partition in range(PARTITIONS):
        values = [f"{partition}-{number}".encode() for number in range(PER_PARTITION)]
        real_client.send(cluster.bootstrap, name, values, partition=partition)
    return name


class LibrdkafkaMember:
    """Polls only when it is asked to; librdkafka beats in the background."""

    def __init__(self, cluster: Cluster, group: str, topic: str, **settings: Any) -> None:
        self.consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 200,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self.revoked = 0
        self.values: list[bytes] = []
        self.consumer.subscribe([topic], on_revoke=self._on_revoke)

    def _on_revoke(self, _consumer: Consumer, partitions: Sequence[object]) -> None:
        self.revoked += len(partitions)

    def poll(self) -> None:
        message = self.consumer.poll(0.02)
        if message is not None and message.error() is None:
            self.values.append(message.value() or b"")

    @property
    def partitions(self) -> set[int]:
        return {each.partition for each in self.consumer.assignment()}

    def close(self) -> None:
        self.consumer.close()


def until(condition: Callable[[], bool], *members: LibrdkafkaMember) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, [each.partitions for each in members]
        for member in members:
            member.poll()


def is_shared(*members: LibrdkafkaMember) -> bool:
    """Every partition has one owner, and nobody has more than a fair part."""
    owned = sorted(each for member in members for each in member.partitions)
    return owned == list(range(PARTITIONS)) and {len(member.partitions) for member in members} == {
        PARTITIONS // len(members)
    }


class TestLibrdkafka:
    @pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
    def test_three_share_the_work_and_take_over_from_one_that_leaves(
        self, cluster: Cluster, topic: str, strategy: str
    ) -> None:
        with ExitStack() as stack:
            members: list[LibrdkafkaMember] = []
            for size in (1, 2, 3):
                member = LibrdkafkaMember(cluster, topic, topic, partition_assignment_strategy=strategy)
                stack.enter_context(closing(member))
                members.append(member)
                until(lambda: is_shared(*members), *members)
                assert len(members) == size
            until(
                lambda: (
                    len({each for member in members for each in member.values}) == PARTITIONS * PER_PARTITION
                ),
                *members,
            )
            members.pop().close()
            until(lambda: is_shared(*members), *members)

    def test_cooperative_members_keep_what_they_have(self, cluster: Cluster, topic: str) -> None:
        settings = {"partition_assignment_strategy": "cooperative-sticky"}
        with (
            closing(LibrdkafkaMember(cluster, topic, topic, **settings)) as first,
            closing(LibrdkafkaMember(cluster, topic, topic, **settings)) as second,
        ):
            until(lambda: is_shared(first, second), first, second)
            before = first.revoked + second.revoked
            with closing(LibrdkafkaMember(cluster, topic, topic, **settings)) as third:
                until(lambda: is_shared(first, second, third), first, second, third)
                assert first.revoked + second.revoked - before == PARTITIONS // 3

    def test_a_static_member_comes_back_to_its_partitions(self, cluster: Cluster, topic: str) -> None:
        def member(instance: str) -> LibrdkafkaMember:
            return LibrdkafkaMember(cluster, topic, topic, group_instance_id=instance)

        with closing(member("a")) as first:
            second = member("b")
            until(lambda: is_shared(first, second), first, second)
            had, revoked = second.partitions, first.revoked
            second.close()
            with closing(member("b")) as again:
                until(lambda: again.partitions == had, first, again)
                assert first.revoked == revoked, "nobody else was disturbed"
                assert is_shared(first, again)

    def test_a_member_that_is_gone_is_noticed(self, cluster: Cluster, topic: str) -> None:
        """It stops polling for longer than it promised, so librdkafka leaves in its place."""
        with closing(LibrdkafkaMember(cluster, topic, topic)) as first:
            settings = {"session_timeout_ms": 2_000, "max_poll_interval_ms": 2_500}
            slow = LibrdkafkaMember(cluster, topic, topic, **settings)
            with closing(slow):
                until(lambda: is_shared(first, slow), first, slow)
                until(lambda: len(first.partitions) == PARTITIONS, first)

    def test_what_admins_see(self, cluster: Cluster, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        with closing(LibrdkafkaMember(cluster, topic, topic)) as member:
            until(lambda: is_shared(member), member)
            group = admin.describe_consumer_groups([topic])[topic].result(SECONDS)
            assert (group.state.name, group.partition_assignor) == ("STABLE", "range")
            (described,) = group.members
            assert described.host == "/127.0.0.1"
            assert len(described.assignment.topic_partitions) == PARTITIONS
            listed = admin.list_consumer_groups().result(SECONDS).valid
            assert topic in {each.group_id for each in listed}
        admin.delete_consumer_groups([topic])[topic].result(SECONDS)
        listed = admin.list_consumer_groups().result(SECONDS).valid
        assert topic not in {each.group_id for each in listed}


def test_kafka_python_members_share_the_work(cluster: Cluster, topic: str) -> None:
    def member() -> KafkaConsumer:
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap,
            group_id=topic,
            auto_offset_reset="earliest",
            session_timeout_ms=6_000,
            heartbeat_interval_ms=200,
        )
        know_the_partitions(consumer)
        return consumer

    with ExitStack() as stack:
        members = [stack.enter_context(closing(member())) for _ in range(2)]
        values: set[bytes] = set()
        deadline = time.monotonic() + SECONDS
        while len(values) < PARTITIONS * PER_PARTITION or any(
            len(each.assignment()) != PARTITIONS // 2 for each in members
        ):
            assert time.monotonic() < deadline, [each.assignment() for each in members]
            for each in members:
                for records in each.poll(timeout_ms=50).values():
                    values.update(record.value for record in records)
        commit_between_rebalances(members)


def commit_between_rebalances(members: Sequence[KafkaConsumer]) -> None:
    """Who stalls for longer than it may has to come back first: the client says to poll and to try again."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            members[0].commit()
        except (CommitFailedError, RebalanceInProgressError):
            assert time.monotonic() < deadline
            for each in members:
                each.poll(timeout_ms=50)
        else:
            return


def test_aiokafka_members_share_the_work(cluster: Cluster, topic: str) -> None:
    def member() -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap,
            group_id=topic,
            auto_offset_reset="earliest",
            session_timeout_ms=6_000,
            heartbeat_interval_ms=200,
        )

    async def work() -> None:
        first, second = member(), member()
        await first.start()
        try:
            await second.start()
            try:
                async with asyncio.timeout(SECONDS):
                    while {len(first.assignment()), len(second.assignment())} != {PARTITIONS // 2}:
                        await asyncio.gather(first.getmany(timeout_ms=50), second.getmany(timeout_ms=50))
                    mine = min(first.assignment())
                    await first.commit({mine: 3})
                    assert await second.committed(mine) == 3
            finally:
                await second.stop()
        finally:
            await first.stop()

    asyncio.run(work())


def test_members_of_several_libraries_agree(cluster: Cluster, topic: str) -> None:
    """One generation of two libraries: both know the range protocol."""
    with (
        closing(LibrdkafkaMember(cluster, topic, topic, partition_assignment_strategy="range")) as first,
        closing(
            KafkaConsumer(
                topic,
                bootstrap_servers=cluster.bootstrap,
                group_id=topic,
                session_timeout_ms=6_000,
                heartbeat_interval_ms=200,
            )
        ) as second,
    ):
        know_the_partitions(second)

        def agree() -> bool:
            second.poll(timeout_ms=20)
            mine = {each.partition for each in second.assignment()}
            return len(mine) == PARTITIONS // 2 and mine | first.partitions == set(range(PARTITIONS))

        until(agree, first)
