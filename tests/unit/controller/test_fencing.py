from __future__ import annotations

import pytest

from headrace.controller.operations import Reassignment
from headrace.controller.safeguards import ControllerSafeguards
from headrace.core.errors import StaleBrokerEpoch
from headrace.core.ids import BrokerEpoch, BrokerId
from tests.unit.controller.cluster import Cluster, row


def cluster_of(minimum: int = 2, **configs: str) -> Cluster:
    cluster = Cluster(range(4))
    settings = [("min.insync.replicas", str(minimum)), *configs.items()]
    cluster.create("t", assignments=[(0, [0, 1, 2])], configs=settings)
    return cluster


def epochs(cluster: Cluster) -> tuple[int, int]:
    state = cluster.image.topics_by_name["t"].state(0)
    return state.leader_epoch, state.partition_epoch


def test_a_lost_leader_is_followed_by_the_next_replica_in_sync() -> None:
    cluster = cluster_of()
    assert cluster.do(cluster.machine.fence_brokers([0])) == 1
    assert row(cluster) == (1, (1, 2), ())
    assert epochs(cluster) == (1, 1)
    assert cluster.image.brokers[0].fenced


def test_a_lost_follower_costs_no_leader_epoch() -> None:
    cluster = cluster_of()
    cluster.do(cluster.machine.fence_brokers([2]))
    assert row(cluster) == (0, (0, 1), ())
    assert epochs(cluster) == (0, 1)


def test_a_fence_is_one_group_that_touches_nothing_else() -> None:
    cluster = cluster_of()
    cluster.create("other", assignments=[(0, [3])])
    (group,) = cluster.machine.fence_brokers([0, 1]).groups
    assert [type(record).__name__ for record in group] == [
        "BrokerRegistrationChangeRecord",
        "BrokerRegistrationChangeRecord",
        "PartitionChangeRecord",
    ]


def test_who_leaves_below_the_minimum_stays_eligible() -> None:
    cluster = cluster_of()
    cluster.fence(2)
    cluster.fence(1)
    assert row(cluster) == (0, (0,), (1,))
    cluster.fence(0)
    assert row(cluster) == (-1, (), (0, 1))
    assert cluster.image.topics_by_name["t"].exceptional(0).last_known_elr == (0,)


def test_all_lost_at_once_are_all_eligible() -> None:
    cluster = cluster_of()
    cluster.do(cluster.machine.fence_brokers([2, 1, 0]))
    assert row(cluster) == (-1, (), (0, 1, 2))


def test_an_eligible_replica_leads_when_it_is_back_and_the_other_stays_eligible() -> None:
    cluster = cluster_of()
    cluster.do(cluster.machine.fence_brokers([0, 1, 2]))
    cluster.fence(1, fenced=False)
    assert row(cluster) == (1, (1,), (0, 2))
    rare = cluster.image.topics_by_name["t"].exceptional(0)
    assert not rare.recovering
    assert rare.last_known_elr == ()


def test_nobody_stays_eligible_beside_an_isr_that_has_its_minimum() -> None:
    """With a minimum of one the new leader moves the high watermark alone, so the other is behind at once."""
    cluster = cluster_of(minimum=1)
    cluster.do(cluster.machine.fence_brokers([0, 1, 2]))
    assert row(cluster) == (-1, (), (0, 1, 2))
    cluster.fence(1, fenced=False)
    assert row(cluster) == (1, (1,), ())


def test_a_minimum_above_the_replicas_counts_as_all_of_them() -> None:
    cluster = Cluster(range(2))
    cluster.create("t", assignments=[(0, [0, 1])], configs=[("min.insync.replicas", "3")])
    cluster.fence(1)
    assert row(cluster) == (0, (0,), (1,))
    assert cluster.machine.fence_brokers([1]).groups == []


def test_who_was_not_in_sync_does_not_lead_unless_the_topic_allows_it() -> None:
    cluster = cluster_of(minimum=1)
    cluster.fence(2)
    cluster.fence(1)
    cluster.fence(2, fenced=False)
    cluster.fence(0)
    assert row(cluster) == (-1, (), (0,))

    allowing = cluster_of(minimum=1, **{"unclean.leader.election.enable": "true"})
    allowing.fence(2)
    allowing.fence(1)
    allowing.fence(2, fenced=False)
    allowing.fence(0)
    assert row(allowing) == (2, (2,), ())
    assert allowing.image.topics_by_name["t"].exceptional(0).recovering


def test_unfencing_elects_only_for_the_leaderless_that_it_may_lead() -> None:
    cluster = cluster_of(minimum=1)
    cluster.fence(2)
    cluster.do(cluster.machine.fence_brokers([0, 1]))
    epoch = cluster.image.brokers[2].epoch
    (group,) = cluster.machine.unfence_broker(BrokerId(2), epoch).groups
    assert len(group) == 1
    cluster.fence(1, fenced=False)
    assert row(cluster)[0] == 1


def test_unfencing_is_for_the_incarnation_that_is_registered() -> None:
    cluster = cluster_of()
    cluster.fence(1)
    epoch = cluster.image.brokers[1].epoch
    with pytest.raises(StaleBrokerEpoch):
        cluster.machine.unfence_broker(BrokerId(1), BrokerEpoch(epoch - 1))
    cluster.do(cluster.machine.unfence_broker(BrokerId(1), epoch))
    assert cluster.machine.unfence_broker(BrokerId(1), epoch).groups == []


def test_a_suspicion_of_an_older_incarnation_is_void() -> None:
    cluster = cluster_of()
    epoch = cluster.image.brokers[0].epoch
    assert cluster.machine.fence_brokers([0], epochs={0: epoch - 1}).groups == []
    assert cluster.machine.fence_brokers([0, 77], epochs={0: epoch}).response == 1


def test_a_reassignment_under_way_survives_a_fence() -> None:
    cluster = cluster_of()
    cluster.do(cluster.machine.reassign_partitions([Reassignment("t", 0, [1, 2, 3])]))
    cluster.fence(0)
    state = cluster.image.topics_by_name["t"].state(0)
    assert (state.leader, state.isr) == (1, (1, 2))
    assert (state.exceptional.adding, state.exceptional.removing) == ((3,), (0,))


def test_without_the_safeguard_anyone_alive_leads() -> None:
    cluster = Cluster(range(3), safeguards=ControllerSafeguards(eligible_leaders=False))
    cluster.create("t", assignments=[(0, [0, 1, 2])])
    for broker_id in (2, 1):
        cluster.fence(broker_id)
        cluster.fence(broker_id, fenced=False)
    cluster.fence(0)
    assert row(cluster)[0] == 1


def test_without_the_safeguard_eligible_replicas_outlive_the_minimum() -> None:
    cluster = Cluster(range(3), safeguards=ControllerSafeguards(eligible_below_minimum=False))
    cluster.create("t", assignments=[(0, [0, 1, 2])])
    cluster.fence(2)
    assert row(cluster) == (0, (0, 1), (2,))
