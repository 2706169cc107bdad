"""No viewer waits for the many searches of another one, and nobody searches for a browser that is gone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headrace.console.http.turns import MOST_WAITING, Gone, TooManyWait, Turns, for_one_who_waits


def test_viewers_are_served_in_rotation() -> None:
    served: list[str] = []

    async def ask(turns: Turns, viewer: str, free: asyncio.Event) -> None:
        async with turns.turn(viewer):
            served.append(viewer)
            await free.wait()

    async def run() -> None:
        turns, free = Turns(at_once=2, of_one=1), asyncio.Event()
        tasks = [asyncio.create_task(ask(turns, "greedy", free)) for _ in range(9)]
        await asyncio.sleep(0)
        tasks += [asyncio.create_task(ask(turns, name, free)) for name in ("a", "b")]
        for _ in range(3):
            await asyncio.sleep(0)
        assert served == ["greedy", "a"], "the second place is not for the same viewer"
        free.set()
        await asyncio.gather(*tasks)
        assert served.index("b") < 4
        assert served.count("greedy") == 9
        assert not turns._waiting
        assert not turns._running

    asyncio.run(run())


def test_one_viewer_has_only_so_many_waiting() -> None:
    async def run() -> None:
        turns = Turns(at_once=1, of_one=1)
        async with turns.turn("other"):
            tasks = [asyncio.create_task(_turn(turns, "greedy")) for _ in range(MOST_WAITING)]
            await asyncio.sleep(0)
            with pytest.raises(TooManyWait):
                await _turn(turns, "greedy")
            for each in tasks[1:]:
                each.cancel()
            await asyncio.gather(*tasks[1:], return_exceptions=True)
            waiting = asyncio.create_task(_turn(turns, "greedy"))
        await asyncio.gather(tasks[0], waiting)

    asyncio.run(run())


async def _turn(turns: Turns, viewer: str) -> None:
    async with turns.turn(viewer):
        await asyncio.sleep(0)


def test_a_turn_that_was_given_to_somebody_who_has_gone_is_handed_on() -> None:
    async def run() -> None:
        turns = Turns(at_once=1, of_one=1)
        async with turns.turn("a"):
            gone, stays = (asyncio.create_task(_turn(turns, name)) for name in ("b", "c"))
            await asyncio.sleep(0)
        gone.cancel()  # its turn has been given to it, and it has not run since
        await asyncio.gather(gone, return_exceptions=True)
        await stays

    asyncio.run(run())


def test_many_who_go_at_once_leave_nothing_behind() -> None:
    async def run() -> None:
        turns = Turns(at_once=1, of_one=1)
        tasks = [asyncio.create_task(_turn(turns, name)) for name in "aaabbbc"]
        await asyncio.sleep(0)
        for each in tasks[:-1]:
            each.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in outcomes[:-1])
        assert outcomes[-1] is None, "who stays has a turn"
        assert not turns._waiting
        assert not turns._running

    asyncio.run(run())


def test_work_ends_with_its_browser() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("work")

    async def receive() -> Any:
        await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def stay() -> Any:
        return await asyncio.Event().wait()

    async def answer() -> int:
        return 5

    async def run() -> None:
        with pytest.raises(Gone):
            await for_one_who_waits(receive, work())
        assert ended == ["work"]
        assert await for_one_who_waits(stay, answer()) == 5

    asyncio.run(run())
