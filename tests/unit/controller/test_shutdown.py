from __future__ import annotations

import pytest

from headrace.core.errors import StaleBrokerEpoch
from headrace.core.ids import BrokerEpoch, BrokerId
from tests.unit.controller.cluster import Cluster, row


def stop(cluster: Cluster, broker_id: int) -> int:
    epoch = cluster.image.brokers[broker_id].epoch
    return cluster.do(cluster.machine.begin_shutdown(BrokerId(broker_id), epoch))


def test_leaderships_move_and_no_isr_waits_for_it() -> None:
    cluster = Cluster(range(3))
    cluster.create("t", assignments=[(0, [0, 1, 2]), (1, [1, 0, 2]), (2, [2, 1, 0])])
    assert stop(cluster, 0) == 0
    assert [row(cluster, i)[:2] for i in range(3)] == [(1, (1, 2)), (1, (1, 2)), (2, (2, 1))]
    assert cluster.image.brokers[0].stopping
    assert not cluster.image.brokers[0].fenced


def test_it_is_one_group_and_asked_again_it_costs_nothing() -> None:
    cluster = Cluster(range(2))
    cluster.create("t", assignments=[(0, [0, 1])])
    epoch = cluster.image.brokers[0].epoch
    assert len(cluster.machine.begin_shutdown(BrokerId(0), epoch).groups) == 1
    stop(cluster, 0)
    assert cluster.machine.begin_shutdown(BrokerId(0), epoch) == ([], 0)


def test_what_nobody_can_take_is_kept_and_tried_again() -> None:
    cluster = Cluster(range(2))
    cluster.create("t", assignments=[(0, [0])])
    cluster.create("u", assignments=[(0, [0, 1])])
    cluster.fence(1)
    assert stop(cluster, 0) == 2
    assert [row(cluster, topic=name)[:2] for name in "tu"] == [(0, (0,)), (0, (0,))]
    cluster.fence(0)
    assert [row(cluster, topic=name) for name in "tu"] == [(-1, (), (0,)), (-1, (), (0,))]


def test_two_that_stop_do_not_hand_over_to_each_other() -> None:
    cluster = Cluster(range(2))
    cluster.create("t", assignments=[(0, [0, 1])])
    assert stop(cluster, 0) == 0
    assert stop(cluster, 1) == 1
    assert row(cluster)[:2] == (1, (1,))


def test_who_leaves_below_the_minimum_stays_eligible() -> None:
    cluster = Cluster(range(2))
    cluster.create("t", assignments=[(0, [0, 1])], configs=[("min.insync.replicas", "2")])
    stop(cluster, 0)
    assert row(cluster) == (1, (1,), (0,))


def test_an_old_incarnation_cannot_stop_the_new_one() -> None:
    cluster = Cluster(range(2))
    with pytest.raises(StaleBrokerEpoch):
        cluster.machine.begin_shutdown(BrokerId(0), BrokerEpoch(1))
