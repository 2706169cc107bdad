"""What `headrace tier gc` finds, and what it must never find."""

from __future__ import annotations

from uuid import UUID

import pytest

from headrace.core.ports_objects import LostRace
from headrace.testing.simulation.memory_objects import MemoryObjects
from headrace.tier.calls import carry_out, perform
from headrace.tier.garbage import Remains, delete, find_remains, find_unnamed, mark_deleted, purge
from headrace.tier.jobs import UploadJob
from headrace.tier.names import ObjectName
from tests.unit.tier.scripted import PLACE, Replica, manifest_in
from tests.unit.tier.stored_history import IndexedLog, listed, put, upload

DAY_MS = 86_400_000
NOW_MS = 100 * DAY_MS
FOLDED = {"fold_above": 4, "fold_keeps": 2}


class Clocked(MemoryObjects):
    def __init__(self) -> None:
        self.now_ms = NOW_MS - 10 * DAY_MS
        super().__init__(lambda: self.now_ms)


@pytest.fixture
def store() -> Clocked:
    return Clocked()


def unnamed(store: MemoryObjects, newest_ms: int = NOW_MS - DAY_MS) -> list[str]:
    found = carry_out(store, find_unnamed(PLACE, listed(store), newest_ms), 1.0)
    assert isinstance(found, list)
    return [each.key for each in found]


def orphan(store: MemoryObjects, epoch: int, number: int = 1) -> list[str]:
    name = ObjectName(90, epoch, f"{number:032d}")
    keys = [PLACE.folder.records(name), PLACE.folder.indexes(name)]
    for key in keys:
        put(store, key, b"orphan")
    return sorted(keys)


def test_what_a_leader_before_has_written_and_nobody_names(store: Clocked) -> None:
    upload(store, 9, **FOLDED)
    left = orphan(store, 1, 1)
    assert unnamed(store) == []  # that leader may name it yet
    second = Replica(store, IndexedLog(12), None)
    second.lead(2)
    second.settle()
    assert unnamed(store) == left
    store.now_ms = NOW_MS - DAY_MS + 1
    young = orphan(store, 1, 2)
    assert unnamed(store) == left
    assert unnamed(store, NOW_MS) == sorted(left + young)
    orphan(store, 2, 3)
    assert unnamed(store) == left


def test_what_a_page_lists_or_was_removed_a_moment_ago_is_none(store: Clocked) -> None:
    leader = upload(store, 9, **FOLDED)
    leader.log.start = 25
    leader.settle(5)
    assert manifest_in(store).removed
    successor = Replica(store, IndexedLog(12), None)
    successor.lead(5)
    successor.settle()
    assert unnamed(store) == []


def test_nothing_is_judged_before_there_is_a_manifest(store: Clocked) -> None:
    orphan(store, 0)
    assert unnamed(store) == []


def test_a_leader_that_was_deposed_cannot_name_what_was_deleted(store: Clocked) -> None:
    """Its upload is there, its manifest not yet: it is frozen between the two, for days."""
    first = upload(store, 2)
    first.log.grow(1)
    job = first.take()
    assert isinstance(job, UploadJob)
    steps = job.run()
    call = next(steps)
    for _ in range(2):
        call = steps.send(perform(store, call, 1.0))
    second = Replica(store, IndexedLog(3), None)
    second.lead(2)
    second.settle()
    garbage = [each for each in listed(store) if each.key in unnamed(store)]
    assert [each.key for each in garbage] == sorted(PLACE.folder.all_of(job.name)[:2])
    assert carry_out(store, delete(garbage), 1.0) is None
    assert isinstance(perform(store, call, 1.0), LostRace)
    assert manifest_in(store).next_offset == 30


def remains(store: MemoryObjects, newest_ms: int = NOW_MS - DAY_MS) -> Remains:
    found = carry_out(store, find_remains(PLACE, listed(store), newest_ms), 1.0)
    assert isinstance(found, Remains)
    return found


def test_a_topic_that_is_gone_is_marked_and_goes_a_day_later(store: Clocked) -> None:
    """Its leader has died before it could do so itself."""
    upload(store, 9, **FOLDED)
    before = len(listed(store))
    found = remains(store)
    assert (found.is_due, found.is_marked) == (False, False)
    store.now_ms = NOW_MS - DAY_MS + 1
    assert carry_out(store, mark_deleted(PLACE, found, UUID(int=5), NOW_MS), 1.0) is None
    found = remains(store)
    assert (found.is_due, found.is_marked, len(listed(store))) == (False, True, before)
    assert manifest_in(store).is_deleted
    found = remains(store, NOW_MS)
    assert found.is_due
    assert carry_out(store, purge(PLACE, found), 1.0) is None
    assert listed(store) == []


def test_a_leader_that_has_not_heard_of_it_writes_no_more(store: Clocked) -> None:
    leader = upload(store, 2)
    assert carry_out(store, mark_deleted(PLACE, remains(store), UUID(int=5), NOW_MS), 1.0) is None
    leader.log.grow(3)
    leader.settle()
    assert manifest_in(store).is_deleted
    assert leader.machine.stopped


def test_remains_without_a_manifest_get_one(store: Clocked) -> None:
    orphan(store, 3)
    found = remains(store)
    assert not found.is_due
    assert carry_out(store, mark_deleted(PLACE, found, UUID(int=5), NOW_MS), 1.0) is None
    assert remains(store).is_due  # the clock of the store stands still: it was made ten days ago
    assert carry_out(store, purge(PLACE, remains(store)), 1.0) is None
    assert listed(store) == []
