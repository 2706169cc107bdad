"""A shard lives as long as a leadership: read from the log when it begins, thrown away when it ends."""

from __future__ import annotations

import asyncio
import errno

import pytest

from headrace.broker.coordinators import loading
from headrace.coordinators.codec import encode
from headrace.coordinators.decision import CoordinatorRecord
from headrace.core.errors import (
    CoordinatorLoading,
    CoordinatorNotAvailable,
    HeadraceError,
    NotCoordinator,
)
from headrace.protocol.batch import check, read_header
from headrace.protocol.records import NewRecord, encode_batch
from headrace.protocol.stored.transaction_log_key import TransactionLogKey
from headrace.testing.disk import SimulatedFile
from tests.unit.broker.coordinators.counters import Counters, add, counted, get, park
from tests.unit.log.material import NOW
from tests.unit.replication.replicas import LOCAL, row


def write(counters: Counters, *records: NewRecord) -> None:
    batch = encode_batch(records)
    counters.partition.append(batch, check(batch), acks=-1, now_ms=NOW, from_client=False)


async def test_a_new_leadership_reads_what_was_written() -> None:
    counters = Counters()
    await counters.loaded()
    for name in ("a", "b", "a"):
        await counters.coordinator.ask("key", add(name))
    counters.follow()
    assert not list(counters.coordinator.loaded())
    counters.lead()
    shard = await counters.loaded()
    assert shard is counters.shards[1]
    assert (shard.numbers, shard.offsets, shard.epoch, shard.loaded_at) == (
        {"a": 2, "b": 1},
        [0, 1, 2],
        3,
        NOW,
    )
    assert await counters.coordinator.ask("key", add("a")) == 3
    assert shard.offsets[-1] == 3


async def test_a_new_epoch_of_the_same_leader_begins_anew() -> None:
    counters = Counters(isr=(1, 2))
    await counters.loaded()
    held = counters.coordinator.ask("key", add("a"))
    await counters.turn()
    counters.lead((1, 2))
    with pytest.raises(NotCoordinator):
        await held
    assert (await counters.loaded()).numbers == {"a": 1}


async def test_a_lost_leadership_refuses_everything_that_is_held() -> None:
    counters = Counters(isr=(1, 2))
    await counters.loaded()
    written = counters.coordinator.ask("key", add("a", effects=("send",)))
    await counters.turn()
    pending = counters.coordinator.ask("key", add("a"))
    looked = counters.coordinator.ask("key", get("a"))
    parked = counters.coordinator.ask("key", park)
    counters.follow()
    for each in (written, pending, looked, parked):
        assert isinstance(each.error, NotCoordinator)
    await counters.turn()
    assert counters.partition.log.end_offset == 1, "what was only pending was never written"
    assert not counters.effects
    with pytest.raises(NotCoordinator):
        await counters.coordinator.ask("key", get("a"))


async def test_what_was_read_is_told_only_when_it_is_committed() -> None:
    counters = Counters(isr=(1, 2))
    await counters.loaded()
    counters.coordinator.ask("key", add("a"))
    await counters.turn()
    counters.lead((1, 2))
    await counters.loaded()
    look = counters.coordinator.ask("key", get("a"))
    await counters.turn()
    assert not look.is_done
    await counters.replicate()
    assert look.result() == 1


async def test_what_was_cut_off_is_forgotten() -> None:
    counters = Counters(isr=(1, 2))
    await counters.loaded()
    counters.coordinator.ask("key", add("a"))
    await counters.turn()
    await counters.replicate()
    lost = counters.coordinator.ask("key", add("a"))
    await counters.turn()
    counters.follow()
    counters.partition.log.truncate_to(1)
    counters.lead()
    assert (await counters.loaded()).numbers == {"a": 1}
    assert isinstance(lost.error, NotCoordinator)


async def test_unreadable_records_and_batches_are_passed_over() -> None:
    counters = Counters(lead=False)
    counters.partition.assign(row(LOCAL, 1, (1,)), LOCAL, 0.0)
    counters.epoch = 1
    good = encode(counted("a", 1), NOW)
    removed = encode(CoordinatorRecord(TransactionLogKey(transactional_id="b"), None), NOW)
    write(counters, good, NewRecord(b"no key"), NewRecord(b"x", b"\x7f\xff"), NewRecord(None, b"\x00"))
    write(counters, NewRecord(b"\x00\x63unknown version", good.key), removed)
    write(counters, encode(counted("poison", 1), NOW), encode(counted("c", 3), NOW))
    damaged = encode_batch([encode(counted("d", 4), NOW)], compression=0)
    damaged[21 + 1] |= 2  # says snappy, and is not
    damaged[17:21] = b"\x00" * 4
    counters.partition.append(damaged, read_header(damaged), acks=-1, now_ms=NOW, from_client=False)
    write(counters, encode(counted("e", 5), NOW))
    counters.lead()
    shard = await counters.loaded()
    assert shard.numbers == {"a": 1, "c": 3, "e": 5}
    assert counters.logged == [
        "record of an internal topic passed over",
        "record of an internal topic passed over",
        "unreadable batch of an internal topic skipped",
    ]


async def test_damage_that_others_do_not_have_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the batch said would be forgotten, though another replica could tell it."""
    monkeypatch.setattr(loading, "RELOAD_SECONDS", 0.0)
    counters = Counters(lead=False)
    counters.partition.assign(row(LOCAL, 1, (1,)), LOCAL, 0.0)
    counters.epoch = 1
    counters.is_elsewhere = True
    write(counters, encode(counted("a", 1), NOW))
    damaged = encode_batch([encode(counted("d", 4), NOW)])
    damaged[17:21] = b"\x00" * 4
    counters.partition.append(damaged, read_header(damaged), acks=-1, now_ms=NOW, from_client=False)
    counters.lead()
    assert isinstance(await refusal_of(counters), CoordinatorNotAvailable)
    while not counters.doubted:
        await asyncio.sleep(0)
    assert counters.doubted[0] == 1
    assert not list(counters.coordinator.loaded())
    counters.is_elsewhere = False  # what is whole is worth more than nothing
    assert (await counters.loaded()).numbers == {"a": 1}


async def test_a_log_that_is_closed_for_a_moment_is_read_as_soon_as_it_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While a replica changes its directory. It was once taken for unreadable, for five seconds."""
    monkeypatch.setattr(loading, "RELOAD_SECONDS", 3600.0)
    monkeypatch.setattr(loading, "MOMENT_SECONDS", 0.0)
    counters = Counters(lead=False)
    counters.partition.assign(row(LOCAL, 1, (1,)), LOCAL, 0.0)
    counters.epoch = 1
    write(counters, encode(counted("a", 1), NOW))
    counters.partition.log.is_open = False
    counters.lead()
    for _ in range(100):
        await asyncio.sleep(0)
    assert counters.coordinator.is_loading
    assert not list(counters.coordinator.loaded())
    counters.partition.log.is_open = True
    assert (await counters.loaded()).numbers == {"a": 1}
    assert counters.logged == []


async def test_loading_lets_others_have_their_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "RECORDS_PER_TURN", 10)
    monkeypatch.setattr(loading, "READ_BYTES", 1_000)
    counters = Counters()
    await counters.loaded()
    answers = [counters.coordinator.ask("key", add(f"{index}")) for index in range(200)]
    await answers[-1]
    counters.lead()
    turns = 0
    while counters.coordinator.is_loading:
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 20
    assert len(counters.shards[1].numbers) == 200


async def test_a_leadership_that_ends_while_it_is_read() -> None:
    counters = Counters()
    await counters.loaded()
    await counters.coordinator.ask("key", add("a"))
    counters.lead()
    await asyncio.sleep(0)
    counters.follow()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not list(counters.coordinator.loaded())
    assert counters.shards[1].loaded_at is None


async def test_a_stop_writes_what_is_decided_and_refuses_what_waits() -> None:
    counters = Counters()
    await counters.loaded()
    decided = counters.coordinator.ask("key", add("a"))
    parked = counters.coordinator.ask("key", park)
    counters.coordinator.stop()
    assert decided.result() == 1
    assert isinstance(parked.error, NotCoordinator)
    with pytest.raises(CoordinatorNotAvailable):
        await counters.coordinator.ask("key", get("a"))
    counters.lead()
    await counters.turn()
    assert len(counters.shards) == 1


async def test_a_partition_that_goes_away_takes_its_shard_with_it() -> None:
    counters = Counters()
    shard = await counters.loaded()
    shard.timers.set("x", 0, lambda _now_ms: pytest.fail("a timer outlived its shard"))
    parked = counters.coordinator.ask("key", park)
    counters.partition.resign()
    counters.coordinator.release(counters.partition)
    assert isinstance(parked.error, NotCoordinator)
    with pytest.raises(NotCoordinator):
        await counters.coordinator.ask("key", get("a"))
    await asyncio.sleep(0.01)


class Unreadable:
    """The disk beneath a partition, in its reads of records."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        self.error: Exception | None = error
        pread = SimulatedFile.pread

        def read(file: SimulatedFile, length: int, position: int) -> bytes:
            if self.error is not None and length > 16:
                raise self.error
            return pread(file, length, position)

        monkeypatch.setattr(SimulatedFile, "pread", read)


async def refusal_of(counters: Counters) -> Exception:
    """What whoever asks is told once it is clear that this is no ordinary loading."""
    for _ in range(10_000):
        try:
            await counters.coordinator.ask("key", get("a"))
        except CoordinatorLoading:
            await asyncio.sleep(0)
        except HeadraceError as error:
            return error
    raise AssertionError("it is loading for ever")


async def test_fault_36_an_error_of_the_disk_while_it_loads_takes_the_directory_offline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counters = Counters()
    await counters.loaded()
    await counters.coordinator.ask("key", add("a"))
    counters.follow()
    Unreadable(monkeypatch, OSError(errno.EIO, "Input/output error"))
    counters.lead()
    refused = await refusal_of(counters)
    assert isinstance(refused, CoordinatorNotAvailable)
    assert "Input/output error" in str(refused)
    assert counters.partition.log.directory.failure is not None
    assert counters.logged == ["internal topic cannot be read"]


async def test_what_cannot_be_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "RELOAD_SECONDS", 0.0)
    counters = Counters()
    await counters.loaded()
    await counters.coordinator.ask("key", add("a"))
    counters.follow()
    disk = Unreadable(monkeypatch, RuntimeError("a defect"))
    counters.lead()
    assert isinstance(await refusal_of(counters), CoordinatorNotAvailable)
    disk.error = None
    shard = await counters.loaded()
    assert shard.numbers == {"a": 1}
    assert set(counters.logged) == {"internal topic cannot be read"}
