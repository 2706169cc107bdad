"""DeleteRecords in a whole simulated cluster: what was answered holds whoever is killed then."""

from __future__ import annotations

from typing import cast

from headrace.broker.handlers import delete_records
from headrace.broker.requests.api import Call
from headrace.network.connection import Connection
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.replication.partition import Partition
from tests.simulation.cluster import SimulatedCluster, SimulatedHost
from tests.simulation.test_control_plane import begin, finish, forwarded, is_active, running, started
from tests.unit.log.material import NOW, batch_of


def replicas(cluster: SimulatedCluster) -> list[Partition]:
    """Of those that run."""
    found = [broker.partitions.find("orders", 0) for broker in cluster.brokers()]
    return [partition for partition in found if partition is not None]


def with_three_records(cluster: SimulatedCluster) -> SimulatedHost:
    """The leader of a topic that is in sync everywhere."""
    wanted = CreatableTopic(name="orders", num_partitions=1, replication_factor=3, assignments=[], configs=[])
    finish(
        cluster, forwarded(is_active(cluster), CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7), 5
    )
    cluster.run_until(lambda: any(each.is_leader for each in replicas(cluster)), 10, "it has a leader")
    (leader,) = [each for each in replicas(cluster) if each.is_leader]
    batch, header = batch_of(b"a", b"b", b"c")
    leader.append(batch, header, acks=1, now_ms=NOW)
    cluster.run_until(
        lambda: [each.high_watermark for each in replicas(cluster)] == [3] * 3, 10, "everybody knows it"
    )
    (host,) = [each for each in cluster.hosts if leader in running(each).partitions]
    return host


def test_what_was_deleted_does_not_come_back_from_a_follower_that_is_killed() -> None:
    with started() as cluster:
        host = with_three_records(cluster)
        asked = DeleteRecordsPartition(partition_index=0, offset=2)
        topic = DeleteRecordsTopic(name="orders", partitions=[asked])
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=5000)
        call = Call(2, None, cast(Connection, None))
        answer = finish(cluster, begin(host, delete_records.handle(running(host).context, request, call)), 2)
        (result,) = answer.topics[0].partitions
        assert (result.error_code, result.low_watermark) == (0, 2)
        for each in cluster.hosts:
            each.kill()
        for each in cluster.hosts:
            if each is not host:
                each.start()
        cluster.run_until(lambda: len(replicas(cluster)) == 2, 30, "the followers are back")
        assert [each.log.log_start_offset for each in replicas(cluster)] == [2] * 2
