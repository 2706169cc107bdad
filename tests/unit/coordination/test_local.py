"""What only the local implementation has: a journal that can fail, or be slow."""

from __future__ import annotations

import asyncio

import pytest

from headrace.coordination import local
from headrace.coordination.local import LocalCoordination
from headrace.core.errors import StorageError
from headrace.core.ids import BrokerId
from headrace.core.ports_coordination import CommitUnknown, ControllerFenced
from tests.unit.coordination.memory_journal import MemoryJournal
from tests.unit.coordination.worlds import batch

ONE, TWO = BrokerId(1), BrokerId(2)


async def test_nothing_is_committed_or_readable_before_it_is_synced() -> None:
    journal = MemoryJournal()
    journal.gate = asyncio.Event()
    port = LocalCoordination(journal)
    epoch = await port.claim_controller(ONE)
    commit = asyncio.create_task(port.append(0, batch(0, b"a", epoch=epoch), epoch))
    await asyncio.sleep(0.01)
    assert not commit.done()
    assert list(await port.read(0)) == []
    assert journal.after_power_loss().end() == 0
    journal.gate.set()
    await commit
    assert len(await port.read(0)) == 1
    assert journal.after_power_loss().end() == 1


async def test_a_change_of_controller_waits_for_the_commit_in_flight() -> None:
    journal = MemoryJournal()
    journal.gate = asyncio.Event()
    port = LocalCoordination(journal)
    epoch = await port.claim_controller(ONE)
    commit = asyncio.create_task(port.append(0, batch(0, b"a", epoch=epoch), epoch))
    await asyncio.sleep(0)
    controller = asyncio.create_task(port.claim_controller(TWO))
    await asyncio.sleep(0.01)
    assert not controller.done()
    journal.gate.set()
    await commit
    assert await controller > epoch
    with pytest.raises(ControllerFenced):
        await port.append(1, batch(1, b"b", epoch=epoch), epoch)


async def test_after_a_failed_sync_the_outcome_is_unknown_and_nothing_more_is_taken() -> None:
    journal = MemoryJournal()
    port = LocalCoordination(journal)
    epoch = await port.claim_controller(ONE)
    journal.failure = OSError(5, "Input/output error")
    with pytest.raises(CommitUnknown):
        await port.append(0, batch(0, b"a", epoch=epoch), epoch)
    journal.failure = None
    with pytest.raises(StorageError):
        await port.append(0, batch(0, b"a", epoch=epoch), epoch)
    with pytest.raises(StorageError):
        await port.read(0)
    assert journal.syncs == 0


async def test_a_long_journal_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "READ_BYTES", 100)
    port = LocalCoordination(MemoryJournal(batch(i, b"x" * 20) for i in range(10)))
    seen: list[int] = []
    at = 0
    while found := await port.read(at):
        assert len(found) < 10
        seen += [each.sequence for each in found]
        at = seen[-1] + 1
    assert seen == list(range(10))
