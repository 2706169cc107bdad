"""The server-side group protocol with librdkafka's consumer, `group.protocol=consumer`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from headrace.coordinators.decision import Decision
from headrace.groups.classic.joins import Client
from headrace.groups.consumer.heartbeats import Heartbeats
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from headrace.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from headrace.testing.cluster import Cluster
from tests.integration import real_client

SECONDS = 40.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Heartbeats come often here: what a group does takes several of them."""
    settings = {
        "group.consumer.heartbeat.interval.ms": "200",
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.session.timeout.ms": "6000",
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.assignment.interval.ms": "0",
        "group.initial.rebalance.delay.ms": "0",
    }
    with Cluster(settings) as running:
        yield running


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    real_client.create(cluster.bootstrap, name, 4)
    for partition in range(4):
        real_client.send(cluster.bootstrap, name, [b"v%d" % n for n in range(5)], partition=partition)
    return name


def consumer(cluster: Cluster, group: str, protocol: str = "consumer", **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def poll_until(condition: Callable[[], bool], *consumers: Consumer) -> list[bytes]:
    """What the consumers read until the condition holds."""
    seen = []
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "did not come about in time"
        for each in consumers:
            message = each.poll(0.05)
            if message is not None and message.error() is None:
                seen.append(bytes(message.value() or b""))
    return seen


def assigned(reader: Consumer) -> set[int]:
    return {each.partition for each in reader.assignment()}


def share(*consumers: Consumer) -> bool:
    """All four partitions are assigned, none of them twice, to everybody some."""
    held = [assigned(each) for each in consumers]
    return all(held) and sum(map(len, held)) == 4 and len(set().union(*held)) == 4


def test_a_group_of_one_reads_everything_and_commits(cluster: Cluster, topic: str) -> None:
    with closing(consumer(cluster, "alone")) as one:
        one.subscribe([topic])
        seen: list[bytes] = []
        deadline = time.monotonic() + SECONDS
        while len(seen) < 20 and time.monotonic() < deadline:
            message = one.poll(0.2)
            if message is not None:
                assert message.error() is None
                seen.append(bytes(message.value() or b""))
        assert len(seen) == 20
        one.commit(asynchronous=False)
        committed = one.committed([TopicPartition(topic, n) for n in range(4)], timeout=10)
        assert [each.offset for each in committed] == [5, 5, 5, 5]


def test_members_share_and_give_back(cluster: Cluster, topic: str) -> None:
    with closing(consumer(cluster, "sharing")) as one:
        one.subscribe([topic])
        poll_until(lambda: len(assigned(one)) == 4, one)
        with closing(consumer(cluster, "sharing")) as two:
            two.subscribe([topic])
            poll_until(lambda: share(one, two), one, two)
        poll_until(lambda: len(assigned(one)) == 4, one)


def test_a_pattern_is_resolved_by_the_broker(cluster: Cluster, topic: str) -> None:
    with closing(consumer(cluster, "pattern")) as one:
        one.subscribe([f"^{topic[:-2]}.*"])
        poll_until(lambda: len(assigned(one)) == 4, one)


def test_new_partitions_are_assigned(cluster: Cluster, topic: str) -> None:
    with closing(consumer(cluster, "growing")) as one:
        one.subscribe([topic])
        poll_until(lambda: len(assigned(one)) == 4, one)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_partitions([NewPartitions(topic, 6)])[topic].result(10)
        poll_until(lambda: len(assigned(one)) == 6, one)


def test_a_static_member_keeps_its_partitions_over_a_restart(cluster: Cluster, topic: str) -> None:
    with closing(consumer(cluster, "static")) as one:
        one.subscribe([topic])
        two = consumer(cluster, "static", group_instance_id="i")
        two.subscribe([topic])
        poll_until(lambda: share(one, two), one, two)
        before = assigned(two)
        two.close()
        with closing(consumer(cluster, "static", group_instance_id="i")) as again:
            again.subscribe([topic])
            poll_until(lambda: bool(assigned(again)), one, again)
            assert assigned(again) == before


def test_the_group_is_described(cluster: Cluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    with closing(consumer(cluster, "described")) as one:
        one.subscribe([topic])
        poll_until(lambda: len(assigned(one)) == 4, one)
        described = admin.describe_consumer_groups(["described"])["described"].result(10)
        assert described.state == ConsumerGroupState.STABLE
        assert {each.partition for each in described.members[0].assignment.topic_partitions} == {0, 1, 2, 3}


def test_a_consumer_joins_a_classic_group_and_takes_it_over(cluster: Cluster, topic: str) -> None:
    """Live, one after the other: classic, both, and the server-side protocol alone; then back again."""
    classic = consumer(cluster, "moving", "classic", session_timeout_ms=6000, heartbeat_interval_ms=200)
    with closing(consumer(cluster, "moving")) as modern:
        with closing(classic):
            classic.subscribe([topic])
            poll_until(lambda: len(assigned(classic)) == 4, classic)
            modern.subscribe([topic])
            poll_until(lambda: share(classic, modern), classic, modern)
        poll_until(lambda: len(assigned(modern)) == 4, modern)
        again = consumer(cluster, "moving", "classic", session_timeout_ms=6000, heartbeat_interval_ms=200)
        again.subscribe([topic])
        with closing(again):
            poll_until(lambda: share(again, modern), again, modern)
            with suppress(RuntimeError):
                modern.close()
            poll_until(lambda: len(assigned(again)) == 4, again)


def test_a_member_that_did_not_hear_its_assignment_in_time_is_told_again(
    cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker stalls for longer than librdkafka waits, which is the interval of heartbeats."""
    stalled: list[str] = []
    heartbeat = Heartbeats.heartbeat

    def stalling(
        self: Heartbeats, request: ConsumerGroupHeartbeatRequest, client: Client, now_ms: int
    ) -> Decision[ConsumerGroupHeartbeatResponse]:
        decision = heartbeat(self, request, client, now_ms)
        assert isinstance(decision.response, ConsumerGroupHeartbeatResponse)
        asked_of_first = request.member_id == first.memberid()
        if asked_of_first and decision.response.assignment is not None and not stalled:
            stalled.append(request.member_id)
            time.sleep(2.5)
        return decision

    with closing(consumer(cluster, "unheard")) as first, closing(consumer(cluster, "unheard")) as second:
        first.subscribe([topic])
        poll_until(lambda: len(assigned(first)) == 4, first)
        monkeypatch.setattr(Heartbeats, "heartbeat", stalling)
        second.subscribe([topic])
        poll_until(lambda: share(first, second), first, second)
        assert stalled == [first.memberid()]


def test_an_empty_group_may_change_its_protocol(cluster: Cluster, topic: str) -> None:
    for protocol in ("classic", "consumer", "classic"):
        with closing(consumer(cluster, "alternating", protocol)) as one:
            one.subscribe([topic])
            poll_until(lambda reader=one: len(assigned(reader)) == 4, one)  # type: ignore[misc]  # a default binds the loop's value
