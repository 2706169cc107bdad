"""A ZooKeeper that has lost everything gets the metadata of a broker's copy back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from headrace.config.zookeeper_address import parse_zookeeper_connect
from headrace.coordination import restore as restoration
from headrace.coordination.ensemble.requests import delete
from headrace.coordination.ensemble.session import Session
from headrace.coordination.restore import RestoreRefused, restore
from headrace.core.ids import BrokerEpoch, BrokerId, ControllerEpoch
from headrace.core.ports_coordination import (
    ClusterIdMissing,
    CommittedBatch,
    ControllerFenced,
    CoordinationUnavailable,
    SnapshotPointer,
)
from headrace.testing.zookeeper import ZooKeeper
from tests.integration.zookeeper_processes import connected
from tests.unit.coordination.worlds import batch

ONE = BrokerId(1)
HIGH = BrokerEpoch(1 << 40)
"""A broker epoch of the old ensemble, far above the numbers that a new one begins with."""


def copy_of(batches: int, *, start: int = 0, epoch: int = 7) -> list[bytes]:
    return [batch(start + 2 * i, b"%d" % i, b"x", epoch=min(i, epoch)) for i in range(batches)]


async def restore_into(
    connect: str, batches: Sequence[bytes], cluster_id: str = "lost", epoch: int = -1, **options: object
) -> ControllerEpoch:
    address = parse_zookeeper_connect(connect)
    assert address is not None
    snapshot = options.get("snapshot")
    assert snapshot is None or isinstance(snapshot, SnapshotPointer)
    return await restore(
        address,
        batches,
        cluster_id=cluster_id,
        broker_epoch=HIGH,
        epoch=ControllerEpoch(epoch),
        snapshot=snapshot,
        session_timeout_ms=20_000,
    )


@pytest.fixture
def where(shared_zookeeper: ZooKeeper, chroot: str) -> str:
    return shared_zookeeper.connect + chroot


async def test_a_restored_cluster_goes_on_where_its_copy_ends(where: str) -> None:
    copy = copy_of(450)
    assert await restore_into(where, copy) == 8
    async with connected(where) as port:
        assert await port.claim_cluster_id("other", directories_empty=False) == "lost"
        assert await port.end() == 900
        whole: list[CommittedBatch] = []
        while part := await port.read(2 * len(whole)):
            whole += part
        assert [found.batch for found in whole] == copy
        assert await port.active_controller() is None
        epoch = await port.claim_controller(ONE, deposing=ControllerEpoch(8))
        assert epoch == 9
        await port.append(900, batch(900, b"new", epoch=epoch), epoch)


async def test_broker_epochs_stay_above_those_of_the_lost_ensemble(where: str) -> None:
    await restore_into(where, copy_of(1))
    async with connected(where) as port:
        first = await port.register(ONE, b"")
        assert first > HIGH
        assert (await port.members())[ONE].epoch == first
        second = await port.register(ONE, b"")
        assert second > first
        await port.deregister(ONE, first)
        assert ONE in await port.members()
        await port.deregister(ONE, second)
        assert await port.members() == {}


async def test_the_epoch_is_raised_above_what_others_know(where: str) -> None:
    assert await restore_into(where, copy_of(20), epoch=41) == 42


async def test_an_ensemble_that_was_emptied_under_a_running_broker_is_not_believed(where: str) -> None:
    """Fault 29: nobody decides on an empty log, becomes controller at epoch 0 or fences whoever is not
    listed."""
    async with connected(where) as port, connected(where) as eraser:
        await port.claim_cluster_id("lost", directories_empty=True)
        epoch = await port.claim_controller(ONE)
        sent = batch(0, b"a", epoch=epoch)
        await port.append(0, sent, epoch)
        await port.register(ONE, b"")
        paths = eraser._paths
        gone = [paths.batch(0), paths.cluster_id, paths.controller_epoch, paths.controller, paths.member(ONE)]
        for path in gone:
            await eraser._session.change(delete(path, -1))
        with pytest.raises(ControllerFenced):
            await port.append(1, batch(1, b"b", epoch=epoch), epoch)
        for attempt in (
            port.claim_controller(ONE),
            port.register(ONE, b""),
            port.members(),
            port.active_controller(),
            port.latest_epoch(),
            port.end(),
            port.read(0),
        ):
            with pytest.raises(CoordinationUnavailable, match="no longer holds this cluster"):
                await attempt
        await restore_into(where, [sent])
        assert await port.end() == 1
        assert await port.claim_controller(ONE) > epoch
        assert await port.register(ONE, b"") > HIGH


async def test_metadata_that_is_there_is_never_overwritten(where: str) -> None:
    async with connected(where) as port:
        await port.claim_cluster_id("lost", directories_empty=True)
        epoch = await port.claim_controller(ONE)
        await port.append(0, batch(0, b"alive", epoch=epoch), epoch)
        with pytest.raises(RestoreRefused, match="there is nothing to restore"):
            await restore_into(where, copy_of(3))
        assert [found.batch for found in await port.read(0)] == [batch(0, b"alive", epoch=epoch)]
        await port.append(1, batch(1, b"on", epoch=epoch), epoch)


async def test_running_brokers_and_other_clusters_are_left_alone(where: str) -> None:
    async with connected(where) as port:
        await port.register(ONE, b"")
        with pytest.raises(RestoreRefused, match=r"brokers are running here \(1\)"):
            await restore_into(where, copy_of(3))
    async with connected(where) as port:
        await port.claim_cluster_id("another", directories_empty=True)
    with pytest.raises(RestoreRefused, match="belongs to cluster another"):
        await restore_into(where, copy_of(3))


async def test_a_controller_of_the_lost_log_is_deposed(where: str) -> None:
    """Somebody became controller over the empty ensemble before it was restored: that epoch is over."""
    async with connected(where) as zombie:
        over = await zombie.claim_controller(ONE)
        assert await restore_into(where, copy_of(3)) > over
        with pytest.raises(ControllerFenced):
            await zombie.append(6, batch(6, b"late", epoch=over), over)


@pytest.mark.parametrize(
    ("copy", "complaint"),
    [
        ([], "no metadata at all"),
        (copy_of(2, start=10), "begins at offset 10"),
        (copy_of(2) + copy_of(1, start=6), "has a hole"),
        ([batch(0, bytes(600_000))], "which no node may hold"),
    ],
)
async def test_a_copy_that_is_not_whole_is_refused(where: str, copy: list[bytes], complaint: str) -> None:
    with pytest.raises(RestoreRefused, match=complaint):
        await restore_into(where, copy)


async def test_a_copy_that_begins_with_a_snapshot_needs_its_pointer(where: str) -> None:
    pointer = SnapshotPointer(12, 99, (ONE,))
    await restore_into(where, copy_of(3, start=10), snapshot=pointer)
    async with connected(where) as port:
        assert await port.snapshot() == pointer
        assert await port.start_offset() == 10
        assert await port.end() == 16


async def test_a_restoration_that_was_cut_off_is_no_cluster_and_can_be_begun_anew(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, writes = Session.commit, 0

    async def fails_at_the_third(session: Session, *operations: object) -> object:
        nonlocal writes
        writes += 1
        if writes == 3:
            raise CoordinationUnavailable("cut off")
        return await commit(session, *operations)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(restoration, "_TOGETHER", 10)
    with monkeypatch.context() as broken:
        broken.setattr(Session, "commit", fails_at_the_third)
        with pytest.raises(CoordinationUnavailable):
            await restore_into(where, copy_of(50))
    async with connected(where) as port:
        assert await port.end() == 40
        for empty in (True, False):
            with pytest.raises(CoordinationUnavailable, match="being restored"):
                await port.claim_cluster_id("new", directories_empty=empty)
    copy = copy_of(30)
    await restore_into(where, copy)
    async with connected(where) as port:
        assert [found.batch for found in await port.read(0)] == copy
        assert await port.claim_cluster_id("new", directories_empty=True) == "lost"


async def test_of_two_restorations_at_once_at_most_one_succeeds(where: str) -> None:
    copies = copy_of(300), [batch(0, b"other", epoch=1)] * 1
    outcomes = await asyncio.gather(*(restore_into(where, copy) for copy in copies), return_exceptions=True)
    assert sum(isinstance(outcome, int) for outcome in outcomes) <= 1
    async with connected(where) as port:
        if any(isinstance(outcome, int) for outcome in outcomes):
            found = [each.batch for each in await port.read(0)]
            winner = copies[0] if isinstance(outcomes[0], int) else copies[1]
            assert found == winner[: len(found)]
            assert await port.claim_cluster_id("x", directories_empty=False) == "lost"
        else:
            with pytest.raises((CoordinationUnavailable, ClusterIdMissing)):
                await port.claim_cluster_id("x", directories_empty=False)
