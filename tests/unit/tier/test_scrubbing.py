"""Rule 17: whatever happens to an object that a manifest names, a scrub finds it, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.ports_objects import ObjectStore, OutcomeUnknown, RangeOutcome, Refused
from headrace.testing.simulation.memory_objects import MemoryObjects
from headrace.tier.calls import carry_out
from headrace.tier.names import ObjectName
from headrace.tier.scrubbing import DAMAGED, MISSING, UNREAD, Scrub, Scrubbed
from tests.unit.tier.scripted import PLACE, Replica, manifest_in
from tests.unit.tier.stored_history import content, in_memory, listed, put, upload

FOLDED = {"fold_above": 6, "fold_keeps": 2}


def scrub(store: ObjectStore, **options: object) -> Scrubbed:
    job = Scrub(PLACE.folder, PLACE.partition, listed(store), **options)  # type: ignore[arg-type]  # its own
    return carry_out(store, job.run(), 1.0)


def kinds(found: Scrubbed) -> list[tuple[str, str]]:
    return [(each.key, each.kind) for each in found.findings]


def keys(store: MemoryObjects, ending: str) -> list[str]:
    return [each.key for each in listed(store) if each.key.endswith(ending)]


def test_what_was_uploaded_is_whole() -> None:
    store = in_memory()
    upload(store, 20, **FOLDED)
    assert keys(store, ".page")
    found = scrub(store)
    assert (found.is_whole, found.start, found.end, found.segments, found.orphans) == (True, 0, 200, 20, 0)
    assert found.size == sum(each.size for each in listed(store) if each.key.endswith((".log", ".idx")))


@settings(max_examples=40)
@given(st.data())
def test_one_changed_object_is_found_and_no_other(data: st.DataObject) -> None:
    store = in_memory()
    upload(store, 9, **FOLDED)
    key = data.draw(st.sampled_from([each.key for each in listed(store)]))
    before = content(store, key)
    change = data.draw(st.sampled_from(["flip", "cut", "grow", "delete"]))
    if change == "delete":
        store.delete(key, deadline_seconds=0)
    else:
        at = data.draw(st.integers(0, len(before) - 1))
        flipped = before[:at] + bytes([before[at] ^ data.draw(st.integers(1, 255))]) + before[at + 1 :]
        put(store, key, {"flip": flipped, "cut": before[:at], "grow": before + b"x"}[change])
    found = scrub(store)
    if key == PLACE.folder.manifest and change == "delete":
        assert (found.end, found.orphans) == (0, len(listed(store)))
    else:
        assert kinds(found) == [(key, MISSING if change == "delete" else DAMAGED)]
        assert all(each.next_step for each in found.findings)


def test_objects_that_nobody_names_are_counted() -> None:
    store = in_memory()
    upload(store, 3)
    for ending in (PLACE.folder.records, PLACE.folder.indexes):
        put(store, ending(ObjectName(30, 1, "f" * 32)), b"12345")
    put(store, f"{PLACE.folder.prefix}notes.txt", b"somebody else's")
    found = scrub(store)
    assert (found.is_whole, found.orphans, found.orphan_bytes) == (True, 2, 10)


class Meanwhile(MemoryObjects):
    """Something happens before the first range is read."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__(lambda: 0)
        self.then: Callable[[], None] | None = then

    def get_range(self, key: str, start: int, length: int, *, deadline_seconds: float) -> RangeOutcome:
        then, self.then = self.then, None
        if then is not None:
            then()
        return super().get_range(key, start, length, deadline_seconds=deadline_seconds)


def test_what_retention_takes_away_meanwhile_is_no_finding() -> None:
    def retain() -> None:
        leader.log.start = 45
        leader.settle()

    store = Meanwhile(retain)
    leader: Replica = upload(store, 8, grace_ms=0)
    found = scrub(store)
    assert manifest_in(store).start == 45
    assert found.is_whole
    assert len(keys(store, ".log")) == 4


class Silent(MemoryObjects):
    def __init__(self, attempts: int, outcome: RangeOutcome) -> None:
        super().__init__(lambda: 0)
        self.left = attempts
        self.outcome = outcome

    def get_range(self, key: str, start: int, length: int, *, deadline_seconds: float) -> RangeOutcome:
        if f"/{20:020}-" in key and self.left:
            self.left -= 1
            return self.outcome
        return super().get_range(key, start, length, deadline_seconds=deadline_seconds)


@pytest.mark.parametrize("outcome", [OutcomeUnknown("no answer"), Refused("403")])
def test_what_could_not_be_read_is_said_and_read_again(outcome: RangeOutcome) -> None:
    store = Silent(3, outcome)
    upload(store, 5)
    verified: list[int] = []
    found = scrub(store, on_verified=lambda _, to: verified.append(to))
    assert [kind for _, kind in kinds(found)] == [UNREAD]
    assert verified == [10, 20]  # whoever goes on reads what follows once more
    store.left = 0
    assert scrub(store, verified_to=20).is_whole


def test_a_store_that_answers_at_last() -> None:
    store = Silent(2, OutcomeUnknown("no answer"))
    upload(store, 5)
    assert scrub(store).is_whole


def test_a_scrub_goes_on_where_it_was_cut_off() -> None:
    store = in_memory()
    upload(store, 6)
    put(store, keys(store, ".log")[1], b"damaged")
    seen: list[tuple[int, Scrubbed]] = []
    read: list[int] = []

    class Cut(Exception):
        pass

    def on_verified(so_far: Scrubbed, to: int) -> None:
        seen.append((to, so_far))
        if to == 40:
            raise Cut

    with pytest.raises(Cut):
        scrub(store, on_verified=on_verified)
    to, before = seen[-1]
    found = scrub(store, verified_to=to, before=before, on_read=read.append)
    assert [kind for _, kind in kinds(found)] == [DAMAGED]
    assert found.segments == 6
    assert len(read) == 2


def test_a_manifest_of_nobody_knows_what() -> None:
    store = in_memory()
    upload(store, 2)
    put(store, PLACE.folder.manifest, b"{}")
    assert kinds(scrub(store)) == [(PLACE.folder.manifest, DAMAGED)]
