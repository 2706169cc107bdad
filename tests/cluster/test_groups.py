"""Groups and transactions of real clients on three brokers, one of which is killed: their coordinator."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from tests.cluster_process import HeadraceCluster
from tests.compatibility.clients.client import NewRecord
from tests.compatibility.clients.confluent import ConfluentClient
from tests.compatibility.clients.transactional import ConfluentTransactions
from tests.compatibility.members.confluent import ConfluentMember
from tests.compatibility.members.member import Member, Membership
from tests.wire import Wire

SECONDS = 60
GROUP, TRANSACTION = 0, 1
#: Brokers in the order of their places, for topics that every broker holds.
EVERYWHERE = [[1, 2, 3]]
PROPERTIES = {
    "zookeeper.session.timeout.ms": "4000",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "300",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadraceCluster]:
    with HeadraceCluster(tmp_path_factory.mktemp("cluster"), properties=PROPERTIES) as running:
        yield running


def coordinator(cluster: HeadraceCluster, key: str, kind: int) -> int:
    asked = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    deadline = time.monotonic() + SECONDS
    while True:
        for broker in cluster.brokers.values():
            if broker.running:
                with Wire(broker.port, timeout=10) as wire:
                    (found,) = wire.ask(asked, 4, FindCoordinatorResponse).coordinators
                if not found.error_code:
                    return int(found.node_id)
        assert time.monotonic() < deadline, f"no coordinator for {key}"
        time.sleep(0.1)


def read(member: Member, count: int) -> list[bytes]:
    values: list[bytes] = []
    deadline = time.monotonic() + SECONDS
    while len(values) < count:
        assert time.monotonic() < deadline, f"{len(values)} of {count} records"
        values += [one.value for one in member.poll(0.1)]
    return sorted(values + [one.value for one in member.poll(0.3)])


@contextmanager
def without(cluster: HeadraceCluster, broker_id: int) -> Iterator[None]:
    """Kill a broker whose followers have all, and have it back when the test goes on."""
    known = cluster.view("__consumer_offsets", "__transaction_state").partitions
    for name in dict.fromkeys(name for name, _ in known):
        cluster.wait_in_sync(name)
    cluster.kill(broker_id)
    try:
        yield
    finally:
        cluster.restart(broker_id)
        cluster.wait_whole()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_survives_its_coordinator(cluster: HeadraceCluster, protocol: str) -> None:
    topic, group = f"group-{protocol}", f"survives-{protocol}"
    client = ConfluentClient(cluster.bootstrap)
    cluster.create_topic(topic, EVERYWHERE)
    client.produce(topic, [NewRecord(b"1")])
    member = ConfluentMember(cluster.bootstrap, Membership(group, topic, protocol=protocol))
    assert read(member, 1) == [b"1"]
    member.commit({0: 1}, "kept")

    victim = coordinator(cluster, group, GROUP)
    with without(cluster, victim):
        client.produce(topic, [NewRecord(b"2")])
        assert read(member, 1) == [b"2"]
        member.commit({0: 2}, "kept")
        assert coordinator(cluster, group, GROUP) != victim
        member.close()
        successor = ConfluentMember(cluster.bootstrap, Membership(group, topic, protocol=protocol))
        client.produce(topic, [NewRecord(b"3")])
        assert read(successor, 1) == [b"3"]
        successor.close()


def test_a_transaction_survives_its_coordinator(cluster: HeadraceCluster) -> None:
    source, sink, group, name = "from", "to", "transforming", "transforms"
    client = ConfluentClient(cluster.bootstrap)
    for each in (source, sink):
        cluster.create_topic(each, EVERYWHERE)
    client.produce(source, [NewRecord(b"a"), NewRecord(b"b")])
    member = ConfluentMember(cluster.bootstrap, Membership(group, source, committed_only=True))
    values = read(member, 2)
    producer = ConfluentTransactions(cluster.bootstrap, name, timeout_ms=60_000)
    producer.begin()
    producer.send(sink, values)
    victim = coordinator(cluster, name, TRANSACTION)
    with without(cluster, victim):
        producer.send_offsets(member, {0: 2})
        producer.commit()
        assert {at: one.offset for at, one in member.committed({0}).items()} == {0: 2}
        member.close()
        reader = ConfluentMember(cluster.bootstrap, Membership("reads", sink, committed_only=True))
        assert read(reader, 2) == [b"a", b"b"]
        reader.close()
    producer.close()
