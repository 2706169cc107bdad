"""What every implementation of the coordination port must do. Each test runs against each of `worlds.py`."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from headrace.core.ids import BrokerEpoch, BrokerId, ControllerEpoch
from headrace.core.ports_coordination import (
    ClusterIdMissing,
    CommittedBatch,
    ControllerFenced,
    SequenceTaken,
    SessionState,
    SnapshotPointer,
)
from tests.unit.coordination.hints import Hints
from tests.unit.coordination.worlds import World, batch

ONE, TWO = BrokerId(1), BrokerId(2)
NEVER = ControllerEpoch(-1)


async def test_a_commit_is_read_back_with_its_sequence(world: World) -> None:
    port = await world.open()
    epoch = await port.claim_controller(ONE)
    first, second = batch(0, b"a", b"b", epoch=epoch), batch(2, b"c", epoch=epoch)
    await port.append(0, first, epoch)
    await port.append(2, second, epoch)
    assert list(await port.read(0)) == [CommittedBatch(0, first), CommittedBatch(2, second)]
    assert list(await port.read(2)) == [CommittedBatch(2, second)]
    assert list(await port.read(3)) == []
    assert await port.end() == 3


async def test_every_process_reads_what_one_committed(world: World) -> None:
    writer, reader = await world.open(), await world.open()
    epoch = await writer.claim_controller(ONE)
    await writer.append(0, batch(0, b"a", epoch=epoch), epoch)
    assert [found.sequence for found in await reader.read(0)] == [0]


async def test_a_commit_survives_a_restart(world: World) -> None:
    port = await world.open()
    epoch = await port.claim_controller(ONE)
    committed = batch(0, b"a", epoch=epoch)
    await port.append(0, committed, epoch)
    await world.restart()
    assert list(await (await world.open()).read(0)) == [CommittedBatch(0, committed)]


async def test_nobody_commits_without_controller(world: World) -> None:
    port = await world.open()
    with pytest.raises(ControllerFenced):
        await port.append(0, batch(0, b"a"), ControllerEpoch(0))
    assert list(await port.read(0)) == []


async def test_a_deposed_controller_is_refused(world: World) -> None:
    old, new = await world.open(), await world.open()
    old_epoch = await old.claim_controller(ONE)
    await old.append(0, batch(0, b"a", epoch=old_epoch), old_epoch)
    new_epoch = await new.claim_controller(TWO)
    with pytest.raises(ControllerFenced):
        await old.append(1, batch(1, b"zombie", epoch=old_epoch), old_epoch)
    await new.append(1, batch(1, b"b", epoch=new_epoch), new_epoch)
    assert [found.sequence for found in await new.read(0)] == [0, 1]


async def test_versions_of_directories_are_kept_for_the_next_process(world: World) -> None:
    port, other = await world.open(), await world.open()
    assert await port.versions(ONE) == {}
    for number in (7, 8):
        await port.note_versions(ONE, {UUID(int=1): number, UUID(int=2): 0})
    await other.note_versions(TWO, {UUID(int=1): 1})
    await port.close()
    assert await other.versions(ONE) == {UUID(int=1): 8, UUID(int=2): 0}
    assert await other.versions(TWO) == {UUID(int=1): 1}


async def test_controller_tells_its_holder_and_epochs_only_rise(world: World) -> None:
    port = await world.open()
    assert await port.active_controller() is None
    first = await port.claim_controller(ONE)
    second = await port.claim_controller(ONE)
    third = await port.claim_controller(TWO)
    assert first < second < third
    controller = await port.active_controller()
    assert controller is not None
    assert controller == (TWO, third)


async def test_an_epoch_that_committed_is_never_given_again(world: World) -> None:
    port = await world.open()
    for _ in range(3):
        epoch = await port.claim_controller(ONE)
    await port.append(0, batch(0, b"a", epoch=epoch), epoch)
    await world.restart()
    assert await (await world.open()).claim_controller(ONE) > epoch


async def test_a_sequence_is_committed_once(world: World) -> None:
    port = await world.open()
    epoch = await port.claim_controller(ONE)
    await port.append(0, batch(0, b"a", epoch=epoch), epoch)
    with pytest.raises(SequenceTaken):
        await port.append(0, batch(0, b"other", epoch=epoch), epoch)
    assert len(await port.read(0)) == 1


async def test_a_gap_is_refused(world: World) -> None:
    port = await world.open()
    epoch = await port.claim_controller(ONE)
    with pytest.raises(ValueError):
        await port.append(5, batch(5, b"a", epoch=epoch), epoch)
    assert list(await port.read(0)) == []


async def test_of_many_commits_at_once_at_one_sequence_one_wins(world: World) -> None:
    port = await world.open()
    epoch = await port.claim_controller(ONE)
    outcomes = await asyncio.gather(
        *(port.append(0, batch(0, b"%d" % i, epoch=epoch), epoch) for i in range(5)), return_exceptions=True
    )
    assert outcomes.count(None) == 1
    assert sum(isinstance(outcome, SequenceTaken) for outcome in outcomes) == 4


async def test_each_registration_is_a_higher_epoch(world: World) -> None:
    port = await world.open()
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
    port = await world.open()
    controller = await port.claim_controller(ONE)
    before = await port.register(ONE, b"")
    await port.append(0, batch(0, b"registration", epoch=controller), controller)
    await world.restart()
    assert await (await world.open()).register(ONE, b"") > before


async def test_an_old_incarnation_cannot_remove_the_new_one(world: World) -> None:
    port = await world.open()
    old = await port.register(ONE, b"old")
    new = await port.register(ONE, b"new")
    await port.deregister(ONE, old)
    assert ONE in await port.members()
    await port.deregister(ONE, new)
    assert ONE not in await port.members()


async def test_watchers_hear_of_members_that_come_and_go(world: World) -> None:
    watcher, port = await world.open(), await world.open()
    hints = Hints()
    watcher.watch_members(hints)

    async def is_member() -> bool:
        return ONE in await watcher.members()

    async def is_no_member() -> bool:
        return ONE not in await watcher.members()

    # More than once: what a watch of the service tells it tells only once.
    for _ in range(3):
        before = hints.count
        epoch = await port.register(ONE, b"")
        await hints.until(is_member, since=before)
        before = hints.count
        await port.deregister(ONE, epoch)
        await hints.until(is_no_member, since=before)


async def test_watchers_hear_of_a_new_incarnation(world: World) -> None:
    watcher, port = await world.open(), await world.open()
    await port.register(ONE, b"old")
    hints = Hints()
    watcher.watch_members(hints)
    for description in (b"new", b"newer", b"newest"):
        before = hints.count
        epoch = await port.register(ONE, description)

        async def is_seen(expected: BrokerEpoch = epoch) -> bool:
            return (await watcher.members())[ONE].epoch == expected

        await hints.until(is_seen, since=before)


async def test_a_watcher_that_has_stopped_hears_nothing(world: World) -> None:
    port = await world.open()
    gone, stays = Hints(), Hints()
    stop = port.watch_members(gone)
    port.watch_members(stays)
    stop()
    stop()
    before = gone.count
    waiting = asyncio.create_task(stays.another())
    await asyncio.sleep(0)
    await port.register(ONE, b"")
    await waiting
    assert gone.count == before


async def test_the_cluster_id_is_made_once(world: World) -> None:
    one, two = await world.open(), await world.open()
    assert await one.claim_cluster_id("mine", directories_empty=True) == "mine"
    assert await two.claim_cluster_id("yours", directories_empty=True) == "mine"
    assert await two.claim_cluster_id("yours", directories_empty=False) == "mine"
    await world.restart()
    assert await (await world.open()).claim_cluster_id("later", directories_empty=True) == "mine"


async def test_a_broker_with_data_never_makes_a_cluster(world: World) -> None:
    with pytest.raises(ClusterIdMissing):
        await (await world.open()).claim_cluster_id("mine", directories_empty=False)


async def test_of_many_successors_of_one_controller_one_enters(world: World) -> None:
    ports = [await world.open() for _ in range(4)]
    over = await ports[0].claim_controller(ONE)
    outcomes = await asyncio.gather(
        *(port.claim_controller(BrokerId(i), deposing=over) for i, port in enumerate(ports)),
        return_exceptions=True,
    )
    entered = [outcome for outcome in outcomes if isinstance(outcome, int)]
    assert len(entered) == 1
    assert sum(isinstance(outcome, ControllerFenced) for outcome in outcomes) == 3
    assert await ports[0].latest_epoch() == entered[0] > over


async def test_the_first_controller_deposes_nobody(world: World) -> None:
    one, two = await world.open(), await world.open()
    assert await one.latest_epoch() == NEVER
    epoch = await one.claim_controller(ONE, deposing=NEVER)
    with pytest.raises(ControllerFenced):
        await two.claim_controller(TWO, deposing=NEVER)
    assert await two.latest_epoch() == epoch
    assert await two.active_controller() == (ONE, epoch)


async def test_whoever_fails_to_depose_changes_nothing(world: World) -> None:
    one, two = await world.open(), await world.open()
    over = await one.claim_controller(ONE)
    epoch = await one.claim_controller(ONE)
    with pytest.raises(ControllerFenced):
        await two.claim_controller(TWO, deposing=over)
    await one.append(0, batch(0, b"a", epoch=epoch), epoch)
    assert await two.active_controller() == (ONE, epoch)


async def test_watchers_hear_of_each_new_controller(world: World) -> None:
    watcher, port = await world.open(), await world.open()
    hints = Hints()
    watcher.watch_controller(hints)
    for holder in (ONE, TWO, ONE):
        before = hints.count
        epoch = await port.claim_controller(holder)

        async def is_seen(expected: tuple[BrokerId, ControllerEpoch] = (holder, epoch)) -> bool:
            return await watcher.active_controller() == expected

        await hints.until(is_seen, since=before)


async def test_membership_and_controller_end_with_the_process(world: World) -> None:
    port = await world.open()
    epoch = await port.claim_controller(ONE)
    await port.register(ONE, b"")
    await port.append(0, batch(0, b"a", epoch=epoch), epoch)
    await world.restart()
    port = await world.open()
    assert await port.members() == {}
    assert await port.active_controller() is None
    assert await port.latest_epoch() == epoch
    with pytest.raises(ControllerFenced):
        await port.append(1, batch(1, b"b", epoch=epoch), epoch)


async def test_closing_ends_membership_and_controller_at_once(world: World) -> None:
    leaving, staying = await world.open(), await world.open()
    await leaving.register(ONE, b"")
    await leaving.claim_controller(ONE)
    await leaving.close()
    assert await staying.members() == {}
    assert await staying.active_controller() is None


async def test_a_session_that_is_open_is_connected(world: World) -> None:
    port = await world.open()
    heard: list[SessionState] = []
    stop = port.watch_session(heard.append)
    assert port.session is SessionState.CONNECTED
    assert port.session_timeout_ms >= 0
    stop()
    assert heard == []


async def test_a_batch_must_begin_at_its_sequence(world: World) -> None:
    port = await world.open()
    epoch = await port.claim_controller(ONE)
    with pytest.raises(ValueError):
        await port.append(0, batch(7, b"a", epoch=epoch), epoch)
    assert await port.end() == 0


async def test_a_successor_goes_on_at_the_end(world: World) -> None:
    old, new = await world.open(), await world.open()
    first = await old.claim_controller(ONE)
    await old.append(0, batch(0, b"a", b"b", epoch=first), first)
    second = await new.claim_controller(TWO)
    with pytest.raises(SequenceTaken):
        await new.append(0, batch(0, b"c", epoch=second), second)
    with pytest.raises(ValueError):
        await new.append(3, batch(3, b"c", epoch=second), second)
    await new.append(2, batch(2, b"c", epoch=second), second)
    assert await old.end() == 3


async def test_a_long_log_is_read_whole_and_in_order(world: World) -> None:
    port = await world.open()
    epoch = await port.claim_controller(ONE)
    for offset in range(150):
        await port.append(offset, batch(offset, b"%d" % offset, epoch=epoch), epoch)
    seen: list[int] = []
    while found := await port.read(len(seen)):
        seen += [each.sequence for each in found]
    assert seen == list(range(150))


async def test_the_snapshot_pointer_is_moved_by_the_controller_alone(world: World) -> None:
    old, new = await world.open(), await world.open()
    assert await old.snapshot() is None
    over = await old.claim_controller(ONE)
    first = SnapshotPointer(3, 0xFEDCBA98, (ONE,))
    await old.move_snapshot(first, over)
    assert await new.snapshot() == first
    epoch = await new.claim_controller(TWO)
    with pytest.raises(ControllerFenced):
        await old.move_snapshot(SnapshotPointer(9, 1, (ONE,)), over)
    assert await new.snapshot() == first
    second = SnapshotPointer(7, 2, (ONE, TWO))
    await new.move_snapshot(second, epoch)
    assert await old.snapshot() == second


async def test_a_trimmed_log_still_has_its_end(world: World) -> None:
    port = await world.open()
    assert await port.start_offset() == 0
    epoch = await port.claim_controller(ONE)
    for offset in range(0, 20, 2):
        await port.append(offset, batch(offset, b"a", b"b", epoch=epoch), epoch)
    await port.trim(11, epoch)
    start = await port.start_offset()
    assert start <= 10
    assert [found.sequence for found in await port.read(start)] == list(range(start, 20, 2))
    await port.trim(20, epoch)
    assert await port.end() == 20
    assert [found.sequence for found in await port.read(18)] == [18]
    with pytest.raises(ValueError):
        await port.trim(21, epoch)
    await port.append(20, batch(20, b"c", epoch=epoch), epoch)
    with pytest.raises(SequenceTaken):
        await port.append(0, batch(0, b"again", epoch=epoch), epoch)


async def test_only_the_controller_trims(world: World) -> None:
    old, new = await world.open(), await world.open()
    over = await old.claim_controller(ONE)
    for offset in range(3):
        await old.append(offset, batch(offset, b"a", epoch=over), over)
    await new.claim_controller(TWO)
    with pytest.raises(ControllerFenced):
        await old.trim(2, over)
    assert len(await new.read(0)) == 3


async def test_a_service_that_works_answers_a_probe_and_is_heard_of(world: World) -> None:
    port = await world.open()
    await port.probe()
    assert port.silent_seconds < 60
