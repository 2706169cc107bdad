"""What a transaction writes to an internal topic counts when its marker says so, and not before."""

from __future__ import annotations

import pytest

from headrace.broker.coordinators.markers import end_batch
from headrace.core.completion import Completion
from headrace.core.errors import InvalidProducerEpoch, InvalidTransactionState, NotLeader
from tests.unit.broker.coordinators.counters import Counters, CounterShard, add, get
from tests.unit.log.material import NOW, read_bytes, whole_batches

PRODUCER = (77, 3)


async def begin(counters: Counters, producer: tuple[int, int] = PRODUCER) -> CounterShard:
    """The transaction coordinator has said that the partition is in a transaction of the producer."""
    shard = await counters.loaded()
    states = counters.partition.log.producers
    verification = states.begin_verification(*producer, 0, raises_epochs=False, now_ms=NOW)
    if verification is not None:
        assert states.end_verification(producer[0], verification)
    return shard


def end(counters: Counters, *, committed: bool, producer: tuple[int, int] = PRODUCER) -> Completion[None]:
    hosted = counters.coordinator.hosted(counters.partition)
    assert hosted is not None
    batch = end_batch(producer, coordinator_epoch=5, committed=committed, now_ms=NOW)
    return hosted.append_marker(batch, producer, committed=committed)


async def test_a_transactional_write_is_a_batch_of_its_own_in_order() -> None:
    counters = Counters()
    shard = await begin(counters)
    before = counters.coordinator.ask("key", add("a"))
    inside = counters.coordinator.ask("key", add("a", 10), producer=PRODUCER)
    after = counters.coordinator.ask("key", add("a"))
    assert [await each for each in (before, inside, after)] == [1, 11, 2]
    found = [
        (header.producer_id, header.producer_epoch, header.base_sequence, header.is_transactional)
        for header, _ in whole_batches(read_bytes(counters.partition.log, 0))
    ]
    assert found == [(-1, -1, -1, False), (77, 3, -1, True), (-1, -1, -1, False)]
    assert (shard.numbers, shard.open) == ({"a": 2}, {77: {"a": 11}})
    assert shard.offsets == [0, 1, 2]


async def test_the_last_stable_offset_waits_for_the_marker() -> None:
    counters = Counters()
    await begin(counters)
    await counters.coordinator.ask("key", add("a"))
    await counters.coordinator.ask("key", add("a", 10), producer=PRODUCER)
    assert counters.partition.last_stable_offset == 1
    await end(counters, committed=True)
    assert counters.partition.last_stable_offset == 3


@pytest.mark.parametrize(("committed", "expected"), [(True, 11), (False, 1)])
async def test_a_marker_decides_here_and_after_a_reload(committed: bool, expected: int) -> None:
    counters = Counters()
    await begin(counters)
    await counters.coordinator.ask("key", add("a"))
    await counters.coordinator.ask("key", add("a", 10), producer=PRODUCER)
    pending = counters.coordinator.ask("key", add("b"))
    await end(counters, committed=committed)
    assert await pending == 1
    assert await counters.coordinator.ask("key", get("a")) == expected
    assert await counters.coordinator.ask("key", add("b")) == 2
    counters.lead()
    shard = await counters.loaded()
    assert (shard.numbers, shard.open) == ({"a": expected, "b": 2}, {})


async def test_an_open_transaction_is_open_after_a_reload() -> None:
    counters = Counters()
    await begin(counters)
    await counters.coordinator.ask("key", add("a", 10), producer=PRODUCER)
    counters.lead()
    assert (await counters.loaded()).open == {77: {"a": 10}}
    await end(counters, committed=True)
    assert await counters.coordinator.ask("key", get("a")) == 10


async def test_a_marker_waits_for_the_replicas_and_is_lost_with_the_leadership() -> None:
    counters = Counters(isr=(1, 2))
    await begin(counters)
    counters.coordinator.ask("key", add("a", 10), producer=PRODUCER)
    marker = end(counters, committed=True)
    look = counters.coordinator.ask("key", get("a"))
    assert not marker.is_done
    await counters.replicate()
    assert (marker.result(), look.result()) == (None, 10)
    late = end(counters, committed=False)
    counters.follow()
    assert late.error is not None
    with pytest.raises(NotLeader):
        await end(counters, committed=True)


async def test_a_marker_that_comes_while_the_log_is_read_is_read_with_it() -> None:
    counters = Counters()
    await begin(counters)
    await counters.coordinator.ask("key", add("a", 10), producer=PRODUCER)
    counters.lead()
    await end(counters, committed=True)
    assert counters.coordinator.is_loading
    assert (await counters.loaded()).numbers == {"a": 10}
    assert await counters.coordinator.ask("key", add("a")) == 11


async def test_an_older_epoch_of_the_producer_writes_nothing() -> None:
    counters = Counters()
    shard = await begin(counters)
    await counters.coordinator.ask("key", add("a", 10), producer=PRODUCER)
    with pytest.raises(InvalidProducerEpoch):
        await counters.coordinator.ask("key", add("b"), producer=(77, 2))
    assert shard.open == {77: {"a": 10}}
    assert await counters.coordinator.ask("key", add("c")) == 1


async def test_a_producer_that_was_not_verified_writes_nothing() -> None:
    counters = Counters()
    shard = await counters.loaded()
    with pytest.raises(InvalidTransactionState):
        await counters.coordinator.ask("key", add("a"), producer=PRODUCER)
    assert not shard.open
    assert counters.partition.log.end_offset == 0
