"""The machine of the tier, one situation at a time. The simulation has them all at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.ports_objects import ABSENT, Found, Listing, Refused
from headrace.testing.simulation.memory_objects import MemoryObjects
from headrace.tier.beginning import BeginAt, LocalLogStays, Wait
from headrace.tier.calls import Call, Get, Outcome, Put, PutIf, carry_out
from headrace.tier.collecting import CollectJob, StartJob, SweepJob
from headrace.tier.jobs import ClaimJob, LoadJob, PageJob, SettleJob, UploadJob
from headrace.tier.knowledge import Unsettled
from headrace.tier.local import TierSettings
from headrace.tier.manifest import Manifest, first_manifest
from headrace.tier.retaining import retained
from headrace.tier.segments import EpochStart
from tests.unit.tier.drawn_manifests import PARTITION, WRITER, segment
from tests.unit.tier.scripted import PLACE, UNKNOWN, Log, Replica, manifest_in


@pytest.fixture
def store() -> MemoryObjects:
    return MemoryObjects(lambda: 0)


def keys(store: MemoryObjects) -> list[str]:
    listing = store.list("", deadline_seconds=0)
    assert isinstance(listing, Listing)
    return [each.key for each in listing.objects]


def is_unsettled(replica: Replica) -> bool:
    return isinstance(replica.machine.pending, Unsettled)


def test_a_leader_uploads_what_is_sealed_and_decided(store: MemoryObjects) -> None:
    leader = Replica(store, Log(4))
    leader.log.high_watermark, leader.log.last_stable_offset = 35, 29
    leader.lead(1)
    leader.settle()
    assert [each.next_offset for each in manifest_in(store).segments] == [10, 20]
    leader.log.last_stable_offset = 35
    leader.settle()
    assert manifest_in(store).next_offset == 30


def test_a_job_is_carried_out_in_a_thread(store: MemoryObjects) -> None:
    leader = Replica(store, Log(1))
    leader.lead(1)
    for _ in range(2):
        job = leader.take()
        assert job is not None
        leader.machine.done(job, carry_out(store, job.run(), 5.0), 0)
    assert manifest_in(store).segments[0].records.size == 100


def test_a_successor_goes_on_where_the_store_ends(store: MemoryObjects) -> None:
    """Its segments have other borders: of the one that holds the end, the rest is uploaded."""
    first = Replica(store, Log(3))
    first.lead(1)
    first.settle()
    log = Log(4, epochs=(EpochStart(1, 0), EpochStart(2, 34)))
    log.local_start = 5  # 5 to 15, 15 to 25, 25 to 35
    log.start = 5
    second = Replica(store, log)
    second.lead(2)
    second.settle()
    added = manifest_in(store).segments[-1]
    assert (added.base_offset, added.next_offset) == (30, 35)
    assert added.epochs == (EpochStart(1, 30), EpochStart(2, 34))


def test_a_zombie_sees_a_later_leader_and_stops(store: MemoryObjects) -> None:
    zombie = Replica(store, Log(2))
    zombie.lead(1)
    zombie.settle()
    zombie.log.count = 3
    zombie.log.high_watermark = zombie.log.last_stable_offset = 30
    job = zombie.take()
    assert isinstance(job, UploadJob)
    successor = Replica(store, Log(3))
    successor.lead(2)
    successor.settle()
    written = manifest_in(store)
    zombie.machine.done(job, zombie.carry_out(job, lambda call: None), 0)
    assert zombie.machine.stopped is not None
    zombie.settle()
    assert manifest_in(store) == written
    assert PLACE.folder.records(job.name) in keys(store), "garbage, until somebody looks for it"


def test_a_manifest_of_unknown_outcome_is_settled_first(store: MemoryObjects) -> None:
    """Whether it took effect or not, and though the store does not answer for a while."""
    for takes_effect in (True, False):
        leader = Replica(MemoryObjects(lambda: 0), Log(2))
        leader.lead(1)
        leader.step()

        def lose(call: Call, leader: Replica = leader, takes_effect: bool = takes_effect) -> Outcome | None:
            if isinstance(call, PutIf) and takes_effect:
                leader.store.put_if(call.key, call.data, call.expected, deadline_seconds=0)
            return UNKNOWN if isinstance(call, PutIf | Get) else None

        leader.step(lose)
        assert is_unsettled(leader)
        leader.now_ms += 1_000
        assert isinstance(leader.step(lambda call: UNKNOWN), SettleJob)
        leader.now_ms += 1_000
        assert isinstance(leader.step(), SettleJob)
        assert leader.calls[-1:] == ([Get] if takes_effect else [PutIf])
        assert not is_unsettled(leader)
        assert manifest_in(leader.store).next_offset == 10


def test_an_object_of_unknown_outcome_gets_another_name(store: MemoryObjects) -> None:
    leader = Replica(store, Log(1))
    leader.lead(1)
    leader.step()
    tried: list[str] = []

    def lose(call: Call) -> Outcome | None:
        if isinstance(call, Put):
            tried.append(call.key)
            return UNKNOWN
        return None

    for _ in range(3):
        leader.step(lose)
        leader.now_ms += 1_000
    assert len(set(tried)) == len(tried) == 3
    leader.settle()
    assert manifest_in(store).next_offset == 10


def test_what_is_refused_is_tried_again_later(store: MemoryObjects) -> None:
    leader = Replica(store, Log(1))
    leader.lead(1)
    leader.step()
    leader.step(lambda call: Refused("403"))
    assert leader.take() is None
    leader.settle()
    assert manifest_in(store).next_offset == 10


def test_nothing_goes_from_the_disk_before_a_manifest_was_read(store: MemoryObjects) -> None:
    settings = TierSettings(local_retention_bytes=0)
    leader = Replica(store, Log(3), settings)
    leader.lead(1)
    assert leader.machine.local_until(leader.log, 0) == 0
    leader.settle()
    assert leader.machine.local_until(leader.log, 0) == 30
    follower = Replica(store, Log(3), settings)
    assert follower.machine.local_until(follower.log, 0) == 0
    assert isinstance(follower.step(), LoadJob)
    assert follower.machine.local_until(follower.log, 0) == 30
    follower.log.high_watermark = 20
    assert follower.machine.local_until(follower.log, 0) == 20
    follower.log.epochs = (EpochStart(0, 0),)
    assert follower.machine.local_until(follower.log, 0) == 0, "other records"


def test_a_follower_reads_again_when_it_could_delete_more(store: MemoryObjects) -> None:
    leader, follower = Replica(store, Log(1)), Replica(store, Log(1))
    leader.lead(1)
    leader.settle()
    assert isinstance(follower.step(), LoadJob)
    follower.now_ms = 1_000_000
    assert follower.take() is None, "it knows all that it could use"
    follower.log.count, follower.log.high_watermark = 2, 20
    assert isinstance(follower.step(), LoadJob)
    assert follower.take() is None


def test_records_are_deleted_in_the_manifest_first_and_objects_after_the_grace(store: MemoryObjects) -> None:
    leader = Replica(store, Log(3), TierSettings(grace_ms=60_000))
    leader.lead(1)
    leader.settle()
    before = keys(store)
    leader.log.start = 20
    assert isinstance(leader.step(), StartJob)
    assert (manifest_in(store).start, len(manifest_in(store).removed)) == (20, 2)
    assert keys(store) == before
    leader.now_ms += 59_000
    assert leader.take() is None
    leader.now_ms += 1_000
    assert isinstance(leader.step(), CollectJob)
    assert len(keys(store)) == len(before) - 4
    assert manifest_in(store).removed == ()


def test_only_old_objects_that_nobody_names_are_garbage(store: MemoryObjects) -> None:
    leader = Replica(store, Log(2), TierSettings(garbage_age_ms=5_000, sweep_ms=10_000))
    leader.lead(3)
    leader.settle()
    folder, name = PLACE.folder, manifest_in(store).segments[0].name
    old = folder.records(name._replace(leader_epoch=2, attempt="a" * 32))
    later = folder.records(name._replace(leader_epoch=4, attempt="b" * 32))
    own = folder.records(name._replace(attempt="c" * 32))
    for key in (old, later, own):
        store.put(key, b"x", deadline_seconds=0)
    named = set(keys(store)) - {old, later, own}
    leader.now_ms += 20_000
    assert isinstance(leader.step(), SweepJob)
    assert set(keys(store)) == {*named, later, own}, "of this epoch only what this leader gave up"


def test_a_leader_that_may_lack_records_claims_and_begins_where_the_store_ends(store: MemoryObjects) -> None:
    first = Replica(store, Log(5))
    first.lead(1)
    first.settle()
    second = Replica(store, Log(2))
    second.lead(4, may_lack_committed=True)
    assert isinstance(second.machine.begin(second.log), Wait)
    assert isinstance(second.step(), LoadJob)
    assert isinstance(second.machine.begin(second.log), Wait), "the first may still add something"
    assert isinstance(second.step(), ClaimJob)
    assert second.machine.begin(second.log) == BeginAt(50, 0, (EpochStart(1, 0),))
    assert manifest_in(store).epoch == 4
    other = Replica(store, Log(6, epochs=(EpochStart(1, 0), EpochStart(2, 45))))
    other.lead(5, may_lack_committed=True)
    other.settle(2)
    assert isinstance(other.machine.begin(other.log), BeginAt), "long enough, and another log"
    same = Replica(store, Log(6))
    same.lead(6, may_lack_committed=True)
    same.settle(2)
    assert same.machine.begin(same.log) == LocalLogStays()


def test_a_manifest_that_is_gone_is_not_made_again(store: MemoryObjects) -> None:
    leader = Replica(store, Log(3, local_start=20))
    leader.lead(2)
    leader.settle()
    assert leader.machine.stopped is not None
    assert keys(store) == []


def test_a_manifest_that_cannot_be_read_stops_everything(store: MemoryObjects) -> None:
    store.put(PLACE.folder.manifest, b"nonsense", deadline_seconds=0)
    leader = Replica(store, Log(3), TierSettings(local_retention_bytes=0))
    leader.lead(2)
    leader.settle()
    assert leader.machine.stopped is not None
    assert leader.machine.local_until(leader.log, 0) == 0
    assert keys(store) == [PLACE.folder.manifest]


def is_stopped(leader: Replica) -> bool:
    return leader.machine.stopped is not None


@pytest.mark.parametrize("nonsense", [b"", b"<html>come back later</html>"])
def test_a_manifest_that_can_be_read_again_goes_on(store: MemoryObjects, nonsense: bytes) -> None:
    """What is no manifest was an accident, or not the store's answer. An older manifest is no repair."""
    leader = Replica(store, Log(3))
    leader.lead(2)
    leader.step()
    leader.step()
    older = store.get(PLACE.folder.manifest, deadline_seconds=0)
    leader.settle()
    whole = store.get(PLACE.folder.manifest, deadline_seconds=0)
    assert isinstance(older, Found)
    assert isinstance(whole, Found)
    store.put(PLACE.folder.manifest, nonsense, deadline_seconds=0)
    leader.machine.read_again()
    leader.settle(5)
    assert is_stopped(leader)
    store.put(PLACE.folder.manifest, older.data, deadline_seconds=0)
    leader.settle(60)
    leader.now_ms += 60_000
    leader.settle(60)
    assert is_stopped(leader)
    store.put(PLACE.folder.manifest, whole.data, deadline_seconds=0)
    leader.now_ms += 60_000
    leader.settle(60)
    assert not is_stopped(leader)
    leader.log = Log(6)
    leader.settle()
    assert manifest_in(store).next_offset == 60


def test_a_deleted_topic_says_so_first_and_leaves_nothing(store: MemoryObjects) -> None:
    leader = Replica(store, Log(3), TierSettings(grace_ms=10_000, garbage_age_ms=20_000))
    leader.lead(1)
    leader.settle()
    count = len(keys(store))
    leader.machine.delete(WRITER)
    leader.step()
    assert manifest_in(store).is_deleted
    assert len(keys(store)) == count
    zombie = Replica(store, Log(4))
    zombie.lead(9)
    zombie.settle()
    assert zombie.machine.stopped is not None
    for _ in range(4):
        leader.now_ms += 70_000
        leader.step()
    assert keys(store) == []
    assert leader.machine.is_purged


@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=12),
    ages=st.lists(st.integers(0, 100), min_size=12, max_size=12),
    in_tier=st.integers(0, 12),
    bound=st.integers(-1, 300),
    bound_ms=st.integers(-1, 100),
)
def test_retention_deletes_what_a_log_without_a_store_would(
    sizes: list[int], ages: list[int], in_tier: int, bound: int, bound_ms: int
) -> None:
    """Tier invariant 7: however much of it is here and there at once."""
    in_tier = min(in_tier, len(sizes))
    manifest: Manifest = first_manifest(PARTITION, 9, WRITER, 0)
    for number in range(in_tier):
        each = segment(number * 10, number * 10 + 10, attempt=number + 1, time=1_000 - ages[number])
        manifest = manifest.with_segment(each._replace(records=each.records._replace(size=sizes[number])))
    settings = TierSettings(retention_bytes=bound, retention_ms=bound_ms)
    found = retained(manifest, None, sum(sizes[in_tier:]), settings, 1_000)
    expected, left = 0, sum(sizes)
    for number in range(in_tier):
        is_over = 0 <= bound <= left - sizes[number]
        if not is_over and not 0 <= bound_ms < ages[number]:
            break
        expected, left = number * 10 + 10, left - sizes[number]
    assert (found.start, found.unread_page) == (expected, None)


def test_an_absent_manifest_is_an_answer(store: MemoryObjects) -> None:
    follower = Replica(store, Log(1), TierSettings(local_retention_bytes=0))
    follower.step()
    known = follower.machine.known
    assert getattr(known, "tag", None) == ABSENT
    assert follower.machine.local_until(follower.log, 0) == 0


def test_a_new_leader_reads_first_what_the_leader_before_it_has_written(store: MemoryObjects) -> None:
    """It knew of no manifest, had nothing to upload, and never looked again: what was given up stayed."""
    settings = TierSettings(grace_ms=60_000)
    first, second = Replica(store, Log(2), settings), Replica(store, Log(2), settings)
    assert isinstance(second.step(), LoadJob), "there is none yet"
    first.lead(1)
    first.settle()
    first.log.start = second.log.start = 20
    assert isinstance(first.step(), StartJob)
    second.lead(2)
    second.settle()
    second.now_ms += 120_000
    second.settle()
    assert keys(store) == [PLACE.folder.manifest]


def test_a_page_that_a_successor_has_given_up_is_not_missed(store: MemoryObjects) -> None:
    settings = TierSettings(fold_above=3, fold_keeps=1, grace_ms=10_000, retention_bytes=300)
    zombie, successor = Replica(store, Log(6)), Replica(store, Log(6), settings)
    zombie.machine.settings = TierSettings(fold_above=3, fold_keeps=1)
    zombie.lead(1)
    zombie.settle()
    (page,) = manifest_in(store).pages
    zombie.machine.settings = settings
    job = zombie.take()
    assert isinstance(job, PageJob)
    successor.lead(2)
    for _ in range(3):
        successor.now_ms += 20_000
        successor.settle()
    assert PLACE.folder.page(page.name) not in keys(store)
    zombie.machine.done(job, zombie.carry_out(job, lambda call: None), 0)
    assert zombie.machine.stopped == "a leader of epoch 2 writes now"


def test_a_page_that_is_missing_stops_everything(store: MemoryObjects) -> None:
    leader = Replica(store, Log(6), TierSettings(fold_above=3, fold_keeps=1))
    leader.lead(1)
    leader.settle()
    (page,) = manifest_in(store).pages
    store.delete(PLACE.folder.page(page.name), deadline_seconds=0)
    leader.machine.settings = TierSettings(retention_bytes=100)
    leader.settle()
    assert leader.machine.stopped == f"{PLACE.folder.page(page.name)} is missing"
