from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from headrace.controller.operations import (
    AlteredPartition,
    ElectionType,
    IsrChange,
    IsrMember,
    Reassignment,
)
from headrace.controller.safeguards import ControllerSafeguards
from headrace.core.errors import (
    FencedLeaderEpoch,
    HeadraceError,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    NewLeaderElected,
    NotController,
    StaleBrokerEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.core.ids import BrokerEpoch, BrokerId
from tests.unit.controller.cluster import Cluster, description, row


def three(**rest: Any) -> Cluster:
    cluster = Cluster(range(4), **rest)
    cluster.create("t", assignments=[(0, [0, 1, 2])], configs=[("min.insync.replicas", "2")])
    return cluster


def proposal(cluster: Cluster, *isr: int, **changed: Any) -> IsrChange:
    topic = cluster.image.topics_by_name["t"]
    members = [IsrMember(each, cluster.image.brokers[each].epoch) for each in isr]
    change = IsrChange(topic.topic_id, 0, topic.leader_epoch(0), topic.partition_epoch(0), members)
    return change._replace(**changed)


def ask(cluster: Cluster, change: IsrChange, leader: int = 0) -> AlteredPartition:
    epoch = cluster.image.brokers[leader].epoch
    (outcome,) = cluster.do(cluster.machine.alter_partitions(BrokerId(leader), epoch, [change]))
    return outcome


def refusal(cluster: Cluster, change: IsrChange, leader: int = 0) -> type[HeadraceError]:
    epoch = cluster.image.brokers[leader].epoch
    result = cluster.machine.alter_partitions(BrokerId(leader), epoch, [change])
    assert result.groups == []
    error = result.response[0].error
    assert error is not None
    return type(error)


def test_a_shrunken_isr_keeps_the_leader_epoch() -> None:
    cluster = three()
    outcome = ask(cluster, proposal(cluster, 0, 1))
    assert outcome.error is None
    assert outcome[2:6] == (0, 0, 1, (0, 1))
    state = cluster.image.topics_by_name["t"].state(0)
    assert (state.leader_epoch, state.partition_epoch, state.isr) == (0, 1, (0, 1))


def test_eligible_leaders_come_and_go_with_the_minimum() -> None:
    cluster = three()
    ask(cluster, proposal(cluster, 0))
    assert row(cluster) == (0, (0,), (1, 2))
    ask(cluster, proposal(cluster, 0, 2))
    assert row(cluster) == (0, (0, 2), ())


def test_what_is_so_already_still_makes_a_row() -> None:
    """A leader asks for it to settle a proposal whose outcome it never learned: only a later row does."""
    cluster = three()
    late = proposal(cluster, 0, 1)
    outcome = ask(cluster, proposal(cluster, 0, 1, 2))
    assert outcome.error is None
    assert (outcome.partition_epoch, outcome.isr) == (1, (0, 1, 2))
    assert refusal(cluster, late) is InvalidUpdateVersion


def test_the_row_must_be_the_one_of_now() -> None:
    cluster = three()
    ask(cluster, proposal(cluster, 0, 1))
    assert refusal(cluster, proposal(cluster, 0, 1, 2, partition_epoch=0)) is InvalidUpdateVersion
    assert refusal(cluster, proposal(cluster, 0, partition_epoch=9)) is NotController
    assert refusal(cluster, proposal(cluster, 0, leader_epoch=9)) is NotController
    cluster.fence(2)
    cluster.fence(0)
    assert refusal(cluster, proposal(cluster, 0, leader_epoch=0)) is FencedLeaderEpoch
    assert refusal(cluster, proposal(cluster, 1, 0)) is InvalidRequest, "it does not lead any more"


def test_a_refusal_carries_the_row_that_holds() -> None:
    cluster = three()
    ask(cluster, proposal(cluster, 0, 1))
    outcome = ask(cluster, proposal(cluster, 0, partition_epoch=0))
    assert outcome[2:6] == (0, 0, 1, (0, 1))


def test_what_cannot_be_an_isr() -> None:
    cluster = three()
    assert refusal(cluster, proposal(cluster, 0, 3)) is InvalidRequest
    assert refusal(cluster, proposal(cluster, 1, 2)) is InvalidRequest
    assert refusal(cluster, proposal(cluster, 0, 1, 1)) is InvalidRequest
    assert refusal(cluster, proposal(cluster)) is InvalidRequest
    assert refusal(cluster, proposal(cluster, 0, topic_id=UUID(int=5))) is UnknownTopicId
    assert refusal(cluster, proposal(cluster, 0, partition=4)) is UnknownTopicOrPartition


def test_a_partition_listed_twice_is_refused_twice() -> None:
    cluster = three()
    change = proposal(cluster, 0)
    result = cluster.machine.alter_partitions(BrokerId(0), cluster.image.brokers[0].epoch, [change, change])
    assert [type(each.error) for each in result.response] == [InvalidRequest] * 2


def test_an_old_incarnation_of_the_leader_is_refused_for_all() -> None:
    cluster = three()
    old = BrokerEpoch(cluster.image.brokers[0].epoch - 1)
    with pytest.raises(StaleBrokerEpoch):
        cluster.machine.alter_partitions(BrokerId(0), old, [proposal(cluster, 0)])


def test_who_is_fenced_stopping_or_unknown_is_not_admitted() -> None:
    cluster = three()
    cluster.fence(2)
    assert refusal(cluster, proposal(cluster, 0, 1, 2)) is IneligibleReplica
    cluster.fence(2, fenced=False)
    cluster.do(cluster.machine.begin_shutdown(BrokerId(1), cluster.image.brokers[1].epoch))
    assert refusal(cluster, proposal(cluster, 0, 1)) is IneligibleReplica
    ask(cluster, proposal(cluster, 0, 2))
    assert row(cluster)[1] == (0, 2)


def test_the_incarnation_that_fetched_must_be_the_one_registered() -> None:
    cluster = three()
    old = cluster.image.brokers[2].epoch
    cluster.do(cluster.machine.register_broker(description(2), BrokerEpoch(500)))
    cluster.fence(2, fenced=False)
    for fetched in (old, -1):
        stale = proposal(cluster, 0, 1)
        stale = stale._replace(isr=[*stale.isr, IsrMember(2, fetched)])
        assert refusal(cluster, stale) is IneligibleReplica
    assert ask(cluster, proposal(cluster, 0, 1, 2)).error is None


def test_a_member_that_stays_needs_no_epoch() -> None:
    cluster = three()
    change = proposal(cluster, 0, 1)
    unnamed = [IsrMember(each.broker_id, -1) for each in change.isr]
    assert ask(cluster, change._replace(isr=unnamed)).error is None


def test_a_stopping_leader_without_an_heir_admits_one() -> None:
    cluster = Cluster(range(2))
    cluster.create("t", assignments=[(0, [0, 1])])
    ask(cluster, proposal(cluster, 0))
    epoch = cluster.image.brokers[0].epoch
    assert cluster.do(cluster.machine.begin_shutdown(BrokerId(0), epoch)) == 1
    assert ask(cluster, proposal(cluster, 0, 1)).error is None
    assert cluster.do(cluster.machine.begin_shutdown(BrokerId(0), epoch)) == 0
    assert row(cluster) == (1, (1,), ())


def test_a_leader_says_when_it_has_recovered() -> None:
    cluster = Cluster(range(2))
    cluster.create("t", assignments=[(0, [0, 1])])
    ask(cluster, proposal(cluster, 0))
    cluster.fence(0)
    cluster.do(cluster.machine.elect_leaders(ElectionType.UNCLEAN, [("t", 0)]))
    cluster.fence(0, fenced=False)
    assert cluster.image.topics_by_name["t"].exceptional(0).recovering
    assert refusal(cluster, proposal(cluster, 1, 0, recovering=True), leader=1) is InvalidRequest
    outcome = ask(cluster, proposal(cluster, 1, 0), leader=1)
    assert (outcome.error, outcome.recovering, outcome.isr) == (None, False, (1, 0))
    assert refusal(cluster, proposal(cluster, 1, recovering=True), leader=1) is InvalidRequest


def test_the_last_admission_completes_a_reassignment() -> None:
    cluster = three()
    cluster.do(cluster.machine.reassign_partitions([Reassignment("t", 0, [3, 1])]))
    outcome = ask(cluster, proposal(cluster, 0, 1, 2, 3))
    assert isinstance(outcome.error, NewLeaderElected)
    state = cluster.image.topics_by_name["t"].state(0)
    assert (state.leader, state.isr, state.replicas) == (3, (1, 3), (3, 1))
    assert (outcome.leader, outcome.leader_epoch, outcome.partition_epoch, outcome.isr) == (
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        state.isr,
    )
    assert len(state.directories) == 2


@pytest.mark.parametrize(
    "name", ["leader_and_partition_epoch", "broker_epoch_in_proposal", "fenced_not_admitted"]
)
def test_without_its_safeguard_a_wrong_proposal_passes(name: str) -> None:
    cluster = three(safeguards=ControllerSafeguards(**{name: False}))
    change = proposal(cluster, 0, 1, 2)
    if name == "leader_and_partition_epoch":
        ask(cluster, proposal(cluster, 0, 1))
    elif name == "broker_epoch_in_proposal":
        cluster.do(cluster.machine.register_broker(description(2), BrokerEpoch(500)))
        cluster.fence(2, fenced=False)
        change = change._replace(partition_epoch=1)
    else:
        cluster.fence(2)
        change = change._replace(partition_epoch=1)
    assert ask(cluster, change).error is None
    assert row(cluster)[1] == (0, 1, 2)


def test_without_its_safeguard_a_replaced_leader_is_heard() -> None:
    cluster = three(safeguards=ControllerSafeguards(broker_epoch_in_request=False))
    old = BrokerEpoch(cluster.image.brokers[0].epoch - 1)
    assert cluster.machine.alter_partitions(BrokerId(0), old, [proposal(cluster, 0)]).groups
