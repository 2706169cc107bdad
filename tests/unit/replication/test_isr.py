"""Which ISR a leader asks for, and who counts while it is not known what became of that."""

from __future__ import annotations

import pytest

from headrace.replication.assignment import IsrProposal
from headrace.replication.partition import Partition
from headrace.replication.progress import FollowerProgress
from tests.unit.replication.replicas import BROKER_EPOCH, LOCAL, append, fetch, new_partition, registered, row

LAG = 30.0


@pytest.fixture
def leader() -> Partition:
    """Leads replicas 1, 2 and 3; broker 3 is not in sync. One record, committed."""
    partition = new_partition()
    partition.assign(row(LOCAL, 1, (1, 2)), LOCAL, 0.0)
    append(partition, b"a")
    fetch(partition, 2, 1)
    assert partition.high_watermark == 1
    return partition


def wanted(partition: Partition, now: float = 0.0) -> tuple[int, ...] | None:
    proposal = partition.proposed_isr(now, LAG, registered)
    return None if proposal is None else proposal.isr


def proposed(partition: Partition) -> IsrProposal:
    proposal = partition.proposed_isr(0.0, LAG, registered)
    assert proposal is not None
    assert partition.propose(proposal)
    return proposal


def test_who_has_everything_may_join(leader: Partition) -> None:
    assert wanted(leader) is None
    fetch(leader, 3, 0)
    assert wanted(leader) is None
    fetch(leader, 3, 1, epoch=177)
    assert leader.proposed_isr(0.0, LAG, lambda _: 177) == IsrProposal(
        1, 10, (1, 2, 3), (-1, BROKER_EPOCH, 177)
    )


def test_who_was_dropped_because_it_lags_does_not_join_before_it_has_the_rest() -> None:
    """It has all that is committed, and cannot get what comes after: the leader's file is damaged there."""
    partition = new_partition(min_insync_replicas=2)
    partition.assign(row(LOCAL, 1, (1, 2)), LOCAL, 0.0)
    append(partition, b"a")
    fetch(partition, 2, 1)
    append(partition, b"b")
    fetch(partition, 2, 1)
    assert partition.high_watermark == 1
    assert wanted(partition) is None
    assert wanted(partition, now=LAG) == (1,)
    partition.assign(row(LOCAL, 1, (1,), version=11), LOCAL, LAG)
    fetch(partition, 2, 1)
    assert partition.high_watermark == 1
    assert wanted(partition, now=LAG + 1) is None
    fetch(partition, 2, 2)
    assert wanted(partition, now=LAG + 2) == (1, 2)


@pytest.mark.parametrize("registration", [None, BROKER_EPOCH + 1, BROKER_EPOCH - 1])
def test_only_the_incarnation_that_is_registered_now_may_join(
    leader: Partition, registration: int | None
) -> None:
    fetch(leader, 3, 1)
    assert leader.proposed_isr(0.0, LAG, lambda _: registration) is None


def test_an_incarnation_that_is_not_said_joins_nothing(leader: Partition) -> None:
    fetch(leader, 3, 1, epoch=-1)
    assert wanted(leader) is None


def test_who_has_not_reached_the_epochs_start_may_not_join() -> None:
    partition = new_partition()
    partition.assign(row(LOCAL, 1, (1, 2)), LOCAL, 0.0)
    append(partition, b"a", b"b")
    partition.assign(row(LOCAL, 2, (1, 2)), LOCAL, 0.0)
    assert partition.high_watermark == 0
    fetch(partition, 3, 1)
    assert wanted(partition) is None
    fetch(partition, 3, 2)
    assert wanted(partition) == (1, 2, 3)


def test_an_isr_change_is_told_when_it_may_be_worth_a_look(leader: Partition) -> None:
    told: list[Partition] = []
    leader.on_isr_change = told.append
    fetch(leader, 2, 1)
    fetch(leader, 3, 0)
    assert told == []
    fetch(leader, 3, 1)
    assert told == [leader]
    proposed(leader)
    fetch(leader, 3, 1)
    assert told == [leader], "not while a proposal is on its way"
    leader.assign(row(LOCAL, 1, (1, 2, 3), version=11), LOCAL, 0.0)
    assert told == [leader] * 2
    fetch(leader, 3, 1)
    assert told == [leader] * 2, "it is in the ISR"


def test_one_proposal_is_on_its_way_at_a_time(leader: Partition) -> None:
    fetch(leader, 3, 1)
    proposal = proposed(leader)
    assert wanted(leader) is None
    assert not leader.propose(proposal)
    leader.proposal_failed(proposal, definite=True)
    assert wanted(leader) == (1, 2, 3)


def test_a_proposal_of_an_older_row_or_epoch_is_not_sent(leader: Partition) -> None:
    fetch(leader, 3, 1)
    proposal = leader.proposed_isr(0.0, LAG, registered)
    assert proposal is not None
    leader.assign(row(LOCAL, 1, (1, 2), version=11), LOCAL, 0.0)
    assert not leader.propose(proposal)
    leader.assign(row(LOCAL, 2, (1, 2)), LOCAL, 0.0)
    assert not leader.propose(proposal._replace(partition_epoch=20))
    leader.resign()
    assert not leader.propose(proposal)


def test_proposed_members_count_until_it_is_known(leader: Partition) -> None:
    """Rules 3 and 10."""
    fetch(leader, 3, 1)
    proposal = proposed(leader)
    append(leader, b"b")
    fetch(leader, 2, 2)
    assert leader.high_watermark == 1
    leader.proposal_failed(proposal, definite=False)
    assert leader.high_watermark == 1
    leader.assign(row(LOCAL, 1, (1, 2), version=11), LOCAL, 0.0)
    assert leader.high_watermark == 2


def test_a_definite_refusal_lets_the_high_watermark_go(leader: Partition) -> None:
    fetch(leader, 3, 1)
    proposal = proposed(leader)
    append(leader, b"b")
    fetch(leader, 2, 2)
    leader.proposal_failed(proposal, definite=True)
    assert leader.high_watermark == 2


def test_a_refusal_settles_nothing_but_itself(leader: Partition) -> None:
    """An earlier proposal on the same row may still be the one that is committed."""
    fetch(leader, 3, 1)
    lost = proposed(leader)
    leader.proposal_failed(lost, definite=False)
    again = proposed(leader)
    leader.proposal_failed(again, definite=True)
    append(leader, b"b")
    fetch(leader, 2, 2)
    assert leader.high_watermark == 1


def test_an_answer_to_a_proposal_that_is_settled_changes_nothing(leader: Partition) -> None:
    fetch(leader, 3, 1)
    old = proposed(leader)
    leader.assign(row(LOCAL, 1, (1, 2), version=11), LOCAL, 0.0)
    new = proposed(leader)
    leader.proposal_failed(old, definite=True)
    assert not leader.propose(new), "it is still on its way"


def test_a_row_is_asked_for_while_somebody_unwanted_is_waited_for(leader: Partition) -> None:
    fetch(leader, 3, 1)
    leader.proposal_failed(proposed(leader), definite=False)
    assert leader.proposed_isr(0.0, LAG, lambda _: None) == IsrProposal(1, 10, (1, 2), (-1, BROKER_EPOCH))


def test_who_has_been_behind_for_the_lag_time_is_dropped(leader: Partition) -> None:
    append(leader, b"b")
    assert wanted(leader, 100.0) is None, "since when it is behind is not known before a look finds it so"
    assert wanted(leader, 115.0) is None
    assert wanted(leader, 130.0) == (1,)


def test_who_keeps_up_under_load_is_never_dropped(leader: Partition) -> None:
    """Always a record behind, but never behind what the leader had at its previous fetch."""
    end = 1
    for second in range(200):
        append(leader, b"b")
        fetch(leader, 2, end, float(second))
        end += 1
        if second % 15 == 0:
            assert wanted(leader, float(second)) is None


def test_who_moves_but_does_not_catch_up_is_dropped(leader: Partition) -> None:
    dropped = None
    for second in range(0, 80, 5):
        for _ in range(3):
            append(leader, b"b")
        fetch(leader, 2, 1 + second // 5, float(second))
        dropped = dropped or wanted(leader, float(second))
    assert dropped == (1,)


def test_who_never_fetches_is_dropped(leader: Partition) -> None:
    leader.assign(row(LOCAL, 2, (1, 2)), LOCAL, 1000.0)
    assert wanted(leader, 1000.0) is None
    assert wanted(leader, 1015.0) is None
    assert wanted(leader, 1030.0) == (1,)


def test_replicas_that_come_and_go_are_known_by_the_row(leader: Partition) -> None:
    leader.assign(row(LOCAL, 1, (1, 2), replicas=(1, 2, 4), version=11), LOCAL, 0.0)
    fetch(leader, 4, 1)
    assert wanted(leader) == (1, 2, 4)


def test_who_still_has_what_the_leader_has_deleted_may_not_join(leader: Partition) -> None:
    """Below the leader's log start nobody can compare epochs: there may lie what was never committed."""
    append(leader, b"b")
    fetch(leader, 2, 2)
    assert leader.high_watermark == 2
    leader.delete_records_before(1)
    leader.on_replica_fetch(3, BROKER_EPOCH, 2, 0.0, 0)
    assert wanted(leader) is None
    leader.delete_records_before(2)
    leader.on_replica_fetch(3, BROKER_EPOCH, 2, 0.0, 1)
    assert wanted(leader) == (1, 2, 3), "what was deleted since its first fetch had been compared then"


def test_followers_that_hold_an_offset_can_be_read_from(leader: Partition) -> None:
    append(leader, b"b")
    leader.on_replica_fetch(2, BROKER_EPOCH, 2, 0.0, 1)
    assert leader.readable_followers(1) == [(2, 2)]
    assert leader.readable_followers(0) == [], "before its log begins"
    assert leader.readable_followers(3) == []
    fetch(leader, 3, 2)
    assert leader.readable_followers(2) == [(2, 2)], "broker 3 is not in sync"


def test_progress_counts_from_the_fetch_before() -> None:
    progress = FollowerProgress(2, 0.0)
    assert not progress.on_fetch(1, 0, 0, 0, 10, 5.0)
    assert progress.caught_up_at == 0.0
    assert progress.on_fetch(1, 10, 0, 0, 20, 6.0), "what the leader had at 5 s"
    assert progress.caught_up_at == 5.0
    assert not progress.on_fetch(1, 15, 0, 0, 30, 7.0)
    assert progress.on_fetch(1, 30, 0, 0, 30, 8.0)
    assert progress.caught_up_at == 8.0


def test_a_new_incarnation_has_not_caught_up_with_the_old_ones_fetch() -> None:
    progress = FollowerProgress(2, 0.0)
    progress.on_fetch(1, 0, 0, 0, 10, 5.0)
    assert not progress.on_fetch(2, 10, 0, 0, 20, 6.0)
