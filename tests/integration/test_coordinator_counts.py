"""What a scrape would tell of groups and transactions while a real client uses them."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.broker.coordinators import counting
from headrace.metrics.coordinators import CoordinatorCounts
from headrace.testing.cluster import Cluster
from tests.cluster_process import eventually
from tests.integration.real_client import create


def counted(cluster: Cluster, size: int = 1) -> tuple[CoordinatorCounts, int]:
    """And how often it paused."""

    async def count() -> tuple[CoordinatorCounts, int]:
        pauses, counting_on = 0, cluster.broker.runtime.metrics.coordinators.count(size)
        while True:
            try:
                next(counting_on)
            except StopIteration as done:
                return done.value, pauses
            pauses += 1

    return cluster.run(count())


def test_transactions_and_groups_are_counted(
    headrace_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap = headrace_cluster.bootstrap
    create(bootstrap, "counted", 1)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "counted"})
    producer.init_transactions(20)
    assert counted(headrace_cluster)[0].transactional_ids == {"Empty": 1}

    producer.begin_transaction()
    producer.produce("counted", b"value")
    assert producer.flush(20) == 0
    open_, pauses = counted(headrace_cluster)
    assert pauses > 0
    assert counted(headrace_cluster, 10_000) == (open_, 0)
    assert open_.transactional_ids == {"Ongoing": 1}
    assert open_.producers >= 1
    assert open_.partitions_with_late_transactions == 0
    monkeypatch.setattr(counting, "LATE_MS", -(10**12))
    assert counted(headrace_cluster)[0].partitions_with_late_transactions == 1

    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "counted-by"})
    producer.send_offsets_to_transaction(
        [TopicPartition("counted", 0, 1)], reader.consumer_group_metadata(), 20
    )
    producer.commit_transaction(20)
    reader.close()

    def is_over() -> bool:
        after = counted(headrace_cluster)[0]
        return (
            after.transactional_ids == {"CompleteCommit": 1}
            and after.partitions_with_late_transactions == 0
            and after.markers_without_leader == after.ends_to_write_again == 0
            and after.classic_groups == {"Empty": 1}
            and not after.consumer_groups
        )

    eventually(is_over, 20, "nothing of the transaction is open any more")
