"""What every implementation of the coordination port must do. Each test runs against each of them.

A `World` is one place where metadata is committed; `open` connects to it as one process does, so that two
controllers can contend. An implementation joins the suite by one more entry in WORLDS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import pytest

from headrace.coordination.local import LocalCoordination
from headrace.core.ids import BrokerId, ControllerEpoch
from headrace.core.ports_coordination import (
    ClusterIdMissing,
    CommittedBatch,
    Coordination,
    OfficeLost,
    SequenceTaken,
)
from headrace.protocol.records import NewRecord, encode_batch
from tests.unit.coordination.memory_journal import MemoryJournal

ONE, TWO = BrokerId(1), BrokerId(2)


class World(Protocol):
    def open(self) -> Coordination: ...

    def restart(self) -> None:
        """All processes end and lose their sessions; what was committed stays."""
        ...


class LocalWorld:
    """One process: every controller in it shares the one coordination object."""

    def __init__(self) -> None:
        self._journal = MemoryJournal()
        self._shared = LocalCoordination(self._journal)

    def open(self) -> LocalCoordination:
        return self._shared

    def restart(self) -> None:
        self._journal = self._journal.after_power_loss()
        self._shared = LocalCoordination(self._journal, cluster_id=self._shared._cluster_id)


WORLDS: dict[str, Callable[[], World]] = {"local": LocalWorld}


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> World:
    return WORLDS[request.param]()


def batch(base_offset: int, *values: bytes, epoch: int = 0) -> bytes:
    records = [NewRecord(value) for value in values]
    return bytes(encode_batch(records, base_offset=base_offset, leader_epoch=epoch))


async def test_a_commit_is_read_back_with_its_sequence(world: World) -> None:
    port = world.open()
    epoch = await port.take_office(ONE)
    first, second = batch(0, b"a", b"b", epoch=epoch), batch(2, b"c", epoch=epoch)
    await port.append(0, first, epoch)
    await port.append(2, second, epoch)
    assert list(await port.read(0)) == [CommittedBatch(0, first), CommittedBatch(2, second)]
    assert list(await port.read(2)) == [CommittedBatch(2, second)]
    assert list(await port.read(3)) == []
    assert await port.end() == 3


async def test_every_process_reads_what_one_committed(world: World) -> None:
    writer, reader = world.open(), world.open()
    epoch = await writer.take_office(ONE)
    await writer.append(0, batch(0, b"a", epoch=epoch), epoch)
    assert [found.sequence for found in await reader.read(0)] == [0]


async def test_a_commit_survives_a_restart(world: World) -> None:
    port = world.open()
    epoch = await port.take_office(ONE)
    committed = batch(0, b"a", epoch=epoch)
    await port.append(0, committed, epoch)
    world.restart()
    assert list(await world.open().read(0)) == [CommittedBatch(0, committed)]


async def test_nobody_commits_without_office(world: World) -> None:
    port = world.open()
    with pytest.raises(OfficeLost):
        await port.append(0, batch(0, b"a"), ControllerEpoch(0))
    assert list(await port.read(0)) == []


async def test_a_deposed_controller_is_refused(world: World) -> None:
    old, new = world.open(), world.open()
    old_epoch = await old.take_office(ONE)
    await old.append(0, batch(0, b"a", epoch=old_epoch), old_epoch)
    new_epoch = await new.take_office(TWO)
    with pytest.raises(OfficeLost):
        await old.append(1, batch(1, b"zombie", epoch=old_epoch), old_epoch)
    await new.append(1, batch(1, b"b", epoch=new_epoch), new_epoch)
    assert [found.sequence for found in await new.read(0)] == [0, 1]


async def test_office_tells_its_holder_and_epochs_only_rise(world: World) -> None:
    port = world.open()
    assert await port.office() is None
    first = await port.take_office(ONE)
    second = await port.take_office(ONE)
    third = await port.take_office(TWO)
    assert first < second < third
    office = await port.office()
    assert office is not None
    assert office == (TWO, third)


async def test_an_epoch_that_committed_is_never_given_again(world: World) -> None:
    port = world.open()
    for _ in range(3):
        epoch = await port.take_office(ONE)
    await port.append(0, batch(0, b"a", epoch=epoch), epoch)
    world.restart()
    assert await world.open().take_office(ONE) > epoch


async def test_a_sequence_is_committed_once(world: World) -> None:
    port = world.open()
    epoch = await port.take_office(ONE)
    await port.append(0, batch(0, b"a", epoch=epoch), epoch)
    with pytest.raises(SequenceTaken):
        await port.append(0, batch(0, b"other", epoch=epoch), epoch)
    assert len(await port.read(0)) == 1


async def test_a_gap_is_refused(world: World) -> None:
    port = world.open()
    epoch = await port.take_office(ONE)
    with pytest.raises(ValueError):
        await port.append(5, batch(5, b"a", epoch=epoch), epoch)
    assert list(await port.read(0)) == []


async def test_of_many_commits_at_once_at_one_sequence_one_wins(world: World) -> None:
    port = world.open()
    epoch = await port.take_office(ONE)
    outcomes = await asyncio.gather(
        *(port.append(0, batch(0, b"%d" % i, epoch=epoch), epoch) for i in range(5)), return_exceptions=True
    )
    assert outcomes.count(None) == 1
    assert sum(isinstance(outcome, SequenceTaken) for outcome in outcomes) == 4


async def test_each_registration_is_a_higher_epoch(world: World) -> None:
    port = world.open()
    first = await port.register(ONE, b"first")
    other = await port.register(TWO, b"other")
    again = await port.register(ONE, b"again")
    assert first < other < again
    members = await port.members()
    assert {member.broker_id: (member.epoch, member.description) for member in members.values()} == {
        ONE: (again, b"again"),
        TWO: (other, b"other"),
    }


async def test_a_broker_epoch_that_a_record_tells_of_is_never_given_again(world: World) -> None:
    port = world.open()
    office = await port.take_office(ONE)
    before = await port.register(ONE, b"")
    await port.append(0, batch(0, b"registration", epoch=office), office)
    world.restart()
    assert await world.open().register(ONE, b"") > before


async def test_an_old_incarnation_cannot_remove_the_new_one(world: World) -> None:
    port = world.open()
    old = await port.register(ONE, b"old")
    new = await port.register(ONE, b"new")
    await port.deregister(ONE, old)
    assert ONE in await port.members()
    await port.deregister(ONE, new)
    assert ONE not in await port.members()


async def test_watchers_hear_of_members_that_come_and_go(world: World) -> None:
    port = world.open()
    heard: list[str] = []
    stop = port.watch_members(lambda: heard.append("changed"))
    epoch = await port.register(ONE, b"")
    await asyncio.sleep(0)
    assert len(heard) == 1
    await port.deregister(ONE, epoch)
    await asyncio.sleep(0)
    assert len(heard) == 2
    stop()
    await port.register(ONE, b"")
    await asyncio.sleep(0)
    assert len(heard) == 2


async def test_the_cluster_id_is_made_once(world: World) -> None:
    one, two = world.open(), world.open()
    assert await one.claim_cluster_id("mine", directories_empty=True) == "mine"
    assert await two.claim_cluster_id("yours", directories_empty=True) == "mine"
    assert await two.claim_cluster_id("yours", directories_empty=False) == "mine"
    world.restart()
    assert await world.open().claim_cluster_id("later", directories_empty=True) == "mine"


async def test_a_broker_with_data_never_makes_a_cluster(world: World) -> None:
    with pytest.raises(ClusterIdMissing):
        await world.open().claim_cluster_id("mine", directories_empty=False)
