"""A member is small: a thousand groups of ten have to fit beside everything else in a broker."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import pytest

from headrace.groups.classic.group import ClassicGroup
from tests.unit.groups.classic.coordinator import DELAY_MS, RANGE, Coordinator

GROUPS = 30
MEMBERS = 10
MOST_BYTES = 1_800
"""Of one member, with its timer and its part of the group."""


@pytest.fixture
def tracing() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("tracing")
def test_a_member_takes_less_than_two_kilobytes() -> None:
    coordinator = Coordinator()
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(GROUPS):
        _fill(coordinator, f"group-{number}")
    coordinator.log.clear()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    members = [len(group.members) for group in coordinator.shard.groups if isinstance(group, ClassicGroup)]
    assert members == [MEMBERS] * GROUPS
    assert after - before < GROUPS * MEMBERS * MOST_BYTES


def _fill(coordinator: Coordinator, name: str) -> None:
    session_ms = 60 * DELAY_MS * GROUPS
    ids = [coordinator.new_id(group=name, session_ms=session_ms) for _ in range(MEMBERS)]
    metadata = ((RANGE[0][0], b"m" * 40),)
    joins = [coordinator.join(each, group=name, protocols=metadata, session_ms=session_ms) for each in ids]
    coordinator.advance(2 * DELAY_MS)
    generation = joins[0].answer.generation_id
    coordinator.sync(ids[0], generation, dict.fromkeys(ids, b"a" * 60), group=name)
    for each in ids[1:]:
        coordinator.sync(each, generation, group=name)
