"""What tools are shown."""

from __future__ import annotations

import pytest

from headrace.core.errors import TransactionalIdNotFound
from headrace.transactions.listing import parse_filter
from headrace.transactions.states import TransactionState
from headrace.transactions.transaction import Producer
from tests.unit.transactions.coordinator import MemoryCoordinator


@pytest.fixture
def coordinator() -> MemoryCoordinator:
    """`open` since the beginning, `late` for a second, `idle` not at all."""
    coordinator = MemoryCoordinator()
    producers = {name: coordinator.producer(name=name) for name in ("open", "late", "idle")}
    coordinator.add(producers["open"], name="open")
    coordinator.pass_time(9_000)
    coordinator.add(producers["late"], name="late")
    coordinator.pass_time(1_000)
    return coordinator


def listed(
    coordinator: MemoryCoordinator,
    *,
    states: tuple[str, ...] = (),
    producer_ids: tuple[int, ...] = (),
    longer_than_ms: int = -1,
) -> tuple[list[str], list[str]]:
    wanted, unknown = parse_filter(states, producer_ids, longer_than_ms)
    found = coordinator.decide(lambda: coordinator.shard.list(wanted, coordinator.now_ms))
    return [each.transactional_id for each in found], unknown


def test_the_names_of_states_are_those_of_kafka() -> None:
    assert [state.shown for state in TransactionState] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]


def test_without_filters_all_are_listed(coordinator: MemoryCoordinator) -> None:
    assert listed(coordinator) == (["open", "late", "idle"], [])


def test_by_state(coordinator: MemoryCoordinator) -> None:
    assert listed(coordinator, states=("Ongoing",)) == (["open", "late"], [])
    assert listed(coordinator, states=("Empty", "Ongoing")) == (["open", "late", "idle"], [])
    assert listed(coordinator, states=("PrepareCommit",)) == ([], [])


def test_unknown_states_are_reported_and_hold_nothing(coordinator: MemoryCoordinator) -> None:
    assert listed(coordinator, states=("Lost", "Empty")) == (["idle"], ["Lost"])
    assert listed(coordinator, states=("Lost",)) == ([], ["Lost"])


def test_by_producer(coordinator: MemoryCoordinator) -> None:
    producer_id = coordinator.shard.transactions["late"].producer_id
    assert listed(coordinator, producer_ids=(producer_id, 4_711)) == (["late"], [])


def test_by_duration(coordinator: MemoryCoordinator) -> None:
    assert listed(coordinator, states=("Ongoing",), longer_than_ms=999)[0] == ["open", "late"]
    assert listed(coordinator, states=("Ongoing",), longer_than_ms=1_000)[0] == ["open"]
    assert listed(coordinator, states=("Ongoing",), longer_than_ms=10_000)[0] == []


def test_a_description_is_the_whole_state(coordinator: MemoryCoordinator) -> None:
    known = coordinator.decide(lambda: coordinator.shard.describe("open"))
    assert known.partitions == {"orders": (0,)}
    assert known.writer == Producer(known.producer_id, 0)
    with pytest.raises(TransactionalIdNotFound):
        coordinator.decide(lambda: coordinator.shard.describe("nobody"))
