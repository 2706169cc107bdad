"""Objects that are not what was written: a reader gets nothing of them, and nobody asks for ever."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.core.errors import HistoryUnavailable
from headrace.core.ports_objects import Found, GetOutcome, RangeOutcome
from headrace.protocol.batch import LOG_OVERHEAD
from headrace.testing.simulation.memory_objects import MemoryObjects
from tests.unit.broker.tiering.test_history import IN_EACH, SEGMENTS, Tiered
from tests.unit.log.material import NOW
from tests.unit.replication.replicas import append
from tests.unit.tier.scripted import PLACE

Damage = Callable[[bytearray, bytes], bytes]


class CountingObjects(MemoryObjects):
    def __init__(self) -> None:
        super().__init__(lambda: NOW)
        self.read: list[str] = []

    def get(self, key: str, *, deadline_seconds: float) -> GetOutcome:
        self.read.append(key)
        return super().get(key, deadline_seconds=deadline_seconds)

    def get_range(self, key: str, start: int, length: int, *, deadline_seconds: float) -> RangeOutcome:
        self.read.append(key)
        assert len(self.read) < 1000, "it asks for ever"
        return super().get_range(key, start, length, deadline_seconds=deadline_seconds)


@pytest.fixture
def store() -> CountingObjects:
    return CountingObjects()


@pytest.fixture
def leader(store: CountingObjects, tmp_path: Path) -> Tiered:
    tiered = Tiered(store, tmp_path / "leader")
    tiered.lead(1)
    tiered.fill()
    tiered.settle()
    return tiered


def replace(leader: Tiered, damage: Damage) -> None:
    """The records of the first segment, by what is made of them and of the second's."""
    assert leader.history.manifest is not None
    keys = [PLACE.folder.records(each.name) for each in leader.history.manifest.segments[:2]]
    first, second = (leader.store.get(key, deadline_seconds=1) for key in keys)
    assert isinstance(first, Found)
    assert isinstance(second, Found)
    leader.store.put(keys[0], damage(bytearray(first.data), second.data), deadline_seconds=1)


def with_length(batch: int, length: int) -> Damage:
    """The length that a batch says it has."""

    def damage(mine: bytearray, _: bytes) -> bytes:
        at = 0
        for _each in range(batch):
            at += int.from_bytes(mine[at + 8 : at + 12], "big") + LOG_OVERHEAD
        mine[at + 8 : at + 12] = length.to_bytes(4, "big")
        return bytes(mine)

    return damage


DAMAGES: dict[str, Damage] = {
    "a length beyond the end": with_length(0, 0x7FFFFFFF),
    "all bits of a length": with_length(0, 0xFFFFFFFF),
    "no length": with_length(0, 0),
    "the second batch": with_length(1, 0x01000000),
    "half of it": lambda mine, _: bytes(mine[: len(mine) // 2]),
    "nothing": lambda *_: b"",
    "a few bytes": lambda mine, _: bytes(mine[:7]),
    "a bit": lambda mine, _: bytes([*mine[:100], mine[100] ^ 1, *mine[101:]]),
    "the next segment": lambda _, next_one: next_one,
    "the next segment at its end": lambda mine, next_one: bytes(mine) + next_one,
    "zeroes": lambda mine, _: bytes(len(mine)),
}


@pytest.mark.parametrize("damage", list(DAMAGES))
@pytest.mark.parametrize("offset", [0, IN_EACH - 1])
def test_damaged_records_are_refused(leader: Tiered, damage: str, offset: int) -> None:
    replace(leader, DAMAGES[damage])
    if damage == "the next segment at its end":  # what is behind the segment's end is never asked for
        assert leader.reader().chunk_at(offset).next_offset == IN_EACH
        return
    with pytest.raises(HistoryUnavailable):
        leader.reader().chunk_at(offset)
    with pytest.raises(HistoryUnavailable):
        leader.reader().first_at(NOW + offset, 0, SEGMENTS * IN_EACH)


def test_records_of_another_topic_with_the_same_offsets_are_refused(
    leader: Tiered, store: CountingObjects, tmp_path: Path
) -> None:
    """Every batch of them is whole. What they are not is what the manifest says."""
    other = Tiered(CountingObjects(), tmp_path / "other")
    other.lead(1)
    for offset in range(IN_EACH):
        append(other.partition, b"other of %d" % offset * 50, timestamp=NOW + offset)
    other.partition.log.roll(NOW)
    other.settle()
    assert other.history.manifest is not None
    name = other.history.manifest.segments[0].name
    found = other.store.get(PLACE.folder.records(name), deadline_seconds=1)
    assert isinstance(found, Found)
    replace(leader, lambda *_: found.data)
    with pytest.raises(HistoryUnavailable, match="not what was written"):
        leader.reader().chunk_at(0)


def test_only_the_page_that_has_an_offset_or_a_time_is_read(leader: Tiered, store: CountingObjects) -> None:
    machine = leader.history.machine
    machine.settings = dataclasses.replace(machine.settings, fold_above=2, fold_keeps=1)
    for _ in range(3):
        leader.settle()
        leader.fill(3)
    leader.settle()
    manifest = leader.history.manifest
    assert manifest is not None
    assert len(manifest.pages) > 2
    for page in manifest.pages:
        store.read.clear()
        leader.reader().chunk_at(page.base_offset)
        leader.reader().first_at(NOW + page.base_offset, 0, manifest.next_offset)
        assert {key for key in store.read if key.endswith(".page")} == {PLACE.folder.page(page.name)}
    store.read.clear()
    leader.reader().beginning()
    assert not any(key.endswith(".page") for key in store.read)
