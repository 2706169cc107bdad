"""Offsets of the source's groups: what a leader commits here, and what it leaves to the group."""

from __future__ import annotations

from uuid import UUID

import pytest

from headrace.broker.linking.carried_offsets import CarriedOffsets, CommittedHere, Place
from headrace.replication.linking import LinkedPartition
from tests.unit.replication.replicas import LOCAL, new_partition, row

GROUP = "billing"
BY_NOBODY_KNOWN = -1


def linked(epoch: int = 3) -> LinkedPartition:
    partition = new_partition(root=f"/{epoch}")
    partition.assign(row(LOCAL, epoch, (LOCAL,), replicas=(LOCAL,)), LOCAL, 0.0)
    return LinkedPartition(partition, "t", UUID(int=77))


def look(
    carried: CarriedOffsets, partition: LinkedPartition, place: Place, found: CommittedHere | None
) -> int | None:
    """What a leader commits when it sees the group there; None for nothing."""
    moved = carried.moved(GROUP, {partition: place})
    for each in carried.are_new(GROUP, moved):
        if carried.is_left_alone(GROUP, each, place, found):
            del moved[each]
    for each in moved:
        carried.on_committed(GROUP, each, place)
    return moved[partition].here if moved else None


def test_commits_what_is_new_and_what_moves_in_either_direction() -> None:
    carried, partition = CarriedOffsets(), linked()
    assert look(carried, partition, Place(100, 100), None) == 100
    assert look(carried, partition, Place(100, 100), CommittedHere(100, BY_NOBODY_KNOWN)) is None
    assert look(carried, partition, Place(150, 150), CommittedHere(100, BY_NOBODY_KNOWN)) == 150
    assert look(carried, partition, Place(20, 20), CommittedHere(150, BY_NOBODY_KNOWN)) == 20


def test_follows_the_end_of_a_copy_that_was_behind_the_group() -> None:
    carried, partition = CarriedOffsets(), linked()
    assert look(carried, partition, Place(100, 40), None) == 40
    assert look(carried, partition, Place(100, 70), CommittedHere(40, BY_NOBODY_KNOWN)) == 70


@pytest.mark.parametrize(
    "found", [CommittedHere(600, 3), CommittedHere(600, BY_NOBODY_KNOWN), CommittedHere(60, 3)]
)
def test_a_new_leader_takes_back_nothing_that_the_group_has_read_here(found: CommittedHere) -> None:
    carried, old, new = CarriedOffsets(), linked(3), linked(4)
    assert look(carried, old, Place(100, 100), None) == 100
    carried.keep_only([new])
    assert look(carried, new, Place(100, 90), found) is None
    assert look(carried, new, Place(100, 100), found) is None, "the end of the copy is no move of the group"
    assert look(carried, new, Place(110, 110), found) == 110, "a move at the source counts as before"


def test_a_new_leader_goes_on_where_the_link_had_committed() -> None:
    carried, old, new = CarriedOffsets(), linked(3), linked(4)
    assert look(carried, old, Place(100, 100), None) == 100
    carried.keep_only([new])
    assert look(carried, new, Place(130, 130), CommittedHere(100, BY_NOBODY_KNOWN)) == 130


def test_what_a_leader_knew_in_an_earlier_term_is_forgotten() -> None:
    carried, first, again = CarriedOffsets(), linked(3), linked(5)
    assert look(carried, first, Place(100, 100), None) == 100
    carried.keep_only([])
    assert look(carried, again, Place(200, 200), CommittedHere(600, 4)) is None
