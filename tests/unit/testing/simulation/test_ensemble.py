"""What only a simulated ensemble can show: sessions that end in their time, and commits in doubt."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

import pytest

from headrace.core.ids import BrokerId
from headrace.core.ports_coordination import (
    CommitUnknown,
    ControllerFenced,
    CoordinationUnavailable,
    SessionState,
)
from headrace.protocol.records import NewRecord, encode_batch
from headrace.testing.simulation.coordination import SimulatedCoordination
from headrace.testing.simulation.ensemble import EnsembleSettings, SimulatedEnsemble
from headrace.testing.simulation.virtual_loop import ProcessLoop
from headrace.testing.simulation.virtual_time import Scheduler

ONE, TWO = BrokerId(1), BrokerId(2)


def batch(base_offset: int) -> bytes:
    return bytes(encode_batch([NewRecord(b"x")], base_offset=base_offset))


class Setting:
    def __init__(self, seed: int = 0) -> None:
        self.scheduler = Scheduler(seed)
        self.ensemble = SimulatedEnsemble(
            ProcessLoop(self.scheduler, "ensemble"),
            Random(seed),
            EnsembleSettings(most_delay=0.005, most_watch_delay=0.1),
        )
        self.loop = ProcessLoop(self.scheduler, "process")

    async def open(self, loop: ProcessLoop | None = None) -> SimulatedCoordination:
        handle = SimulatedCoordination(self.ensemble, loop or self.loop, "process")
        await handle.start()
        return handle

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)


def test_a_short_cut_costs_nothing_and_a_long_one_the_session() -> None:
    setting = Setting()

    async def works() -> None:
        handle = await setting.open()
        states: list[SessionState] = []
        handle.watch_session(states.append)
        await handle.register(ONE, b"")
        handle.cut()
        await asyncio.sleep(0.1)
        handle.heal()
        await asyncio.sleep(10)
        assert ONE in await handle.members()
        assert states == []
        handle.cut()
        await asyncio.sleep(20)
        assert handle.session is SessionState.SUSPENDED
        with pytest.raises(CoordinationUnavailable):
            await handle.members()
        handle.heal()
        await asyncio.sleep(1)
        assert states == [SessionState.SUSPENDED, SessionState.LOST, SessionState.CONNECTED]
        assert ONE not in await handle.members()

    setting.run(works())


def test_the_session_of_a_dead_process_lives_on_for_its_time() -> None:
    setting = Setting()

    async def works() -> None:
        victim = await setting.open()
        other = await setting.open()
        changes: list[float] = []
        await victim.register(ONE, b"")
        await victim.claim_controller(ONE)
        await asyncio.sleep(1)
        other.watch_members(lambda: changes.append(setting.scheduler.now))
        died = setting.scheduler.now
        victim.die()
        await asyncio.sleep(3)
        assert ONE in await other.members()
        assert await other.active_controller() is not None
        await asyncio.sleep(4)
        assert ONE not in await other.members()
        assert await other.active_controller() is None
        assert len(changes) == 1
        assert 0.7 * 6 <= changes[0] - died <= 6.1

    setting.run(works())


def test_an_expiring_session_does_not_take_the_next_incarnation_with_it() -> None:
    setting = Setting()

    async def works() -> None:
        old, new = await setting.open(), await setting.open()
        await old.register(ONE, b"old")
        old.die()
        epoch = await new.register(ONE, b"new")
        await asyncio.sleep(10)
        assert (await new.members())[ONE].epoch == epoch

    setting.run(works())


def test_without_a_quorum_nothing_is_answered_and_no_session_ends() -> None:
    setting = Setting()

    async def works() -> None:
        handle = await setting.open()
        await handle.register(ONE, b"")
        setting.ensemble.lose_quorum()
        await asyncio.sleep(60)
        with pytest.raises(CoordinationUnavailable):
            await handle.members()
        setting.ensemble.regain_quorum()
        await asyncio.sleep(10)
        assert ONE in await handle.members()

    setting.run(works())


def test_a_commit_in_doubt_is_applied_or_not_and_reading_tells_which() -> None:
    applied = lost = 0
    for seed in range(40):
        setting = Setting(seed)

        async def works(setting: Setting) -> bool:
            handle = await setting.open()
            epoch = await handle.claim_controller(ONE)
            setting.ensemble.settings.drop_chance = 0.5
            setting.ensemble.settings.lost_answer_chance = 0.99
            with pytest.raises(CommitUnknown):
                await handle.append(0, batch(0), epoch)
            setting.ensemble.settings.drop_chance = setting.ensemble.settings.lost_answer_chance = 0.0
            await asyncio.sleep(1)
            found = bool(await handle.read(0))
            await asyncio.sleep(5)
            assert bool(await handle.read(0)) == found
            return found

        if setting.run(works(setting)):
            applied += 1
        else:
            lost += 1
    assert applied > 5
    assert lost > 5


def test_a_commit_that_was_sent_into_a_cut_is_refused_if_another_took_controller_meanwhile() -> None:
    setting = Setting(3)

    async def works() -> None:
        old, new = await setting.open(), await setting.open()
        epoch = await old.claim_controller(ONE)
        old.cut()
        commit = asyncio.ensure_future(old.append(0, batch(0), epoch))
        await asyncio.sleep(0.5)
        await new.claim_controller(TWO, deposing=epoch)
        old.heal()
        with pytest.raises(ControllerFenced):
            await commit
        with pytest.raises(ControllerFenced):
            await new.claim_controller(ONE, deposing=epoch)

    setting.run(works())


def test_what_a_process_asked_before_it_died_may_still_happen() -> None:
    outcomes = set()
    for seed in range(20):
        setting = Setting(seed)
        victim = ProcessLoop(setting.scheduler, "victim")

        async def works(setting: Setting, victim: ProcessLoop) -> int:
            handle = await setting.open(victim)
            victim.create_task(handle.register(ONE, b""))
            await asyncio.sleep(0)
            victim.kill()
            handle.die()
            await asyncio.sleep(1)
            return len(setting.ensemble.members())

        outcomes.add(setting.run(works(setting, victim)))
    assert outcomes == {0, 1}
