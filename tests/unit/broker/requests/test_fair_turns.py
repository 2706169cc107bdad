"""Turns: one at a time for everybody, few in all, in rotation; whoever gives up leaves no trace."""

from __future__ import annotations

import asyncio

import pytest

from headrace.broker.requests.fair_turns import FairTurns


class Bench:
    def __init__(self, most: int) -> None:
        self.turns = FairTurns(most)
        self.in_hand: list[str] = []
        self.order: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self._gates: dict[str, asyncio.Event] = {}

    def ask(self, who: str) -> asyncio.Task[None]:
        async def work() -> None:
            async with self.turns.turn(who):
                self.in_hand.append(who)
                self.order.append(who)
                try:
                    assert len(set(self.in_hand)) == len(self.in_hand), "two of one user are in hand"
                    for _ in range(3):
                        await asyncio.sleep(0)
                finally:
                    self.in_hand.remove(who)

        self.tasks.append(asyncio.ensure_future(work()))
        return self.tasks[-1]


async def test_whoever_sends_many_waits_behind_oneself() -> None:
    bench = Bench(2)
    for _ in range(50):
        bench.ask("mallory")
    await asyncio.sleep(0)
    victim = bench.ask("victim")
    await victim
    assert bench.order.index("victim") <= 2
    await asyncio.gather(*bench.tasks)
    assert bench.order.count("mallory") == 50


async def test_those_who_wait_come_in_rotation() -> None:
    bench = Bench(1)
    for who in ("a", "a", "a", "b", "b", "c"):
        bench.ask(who)
    await asyncio.gather(*bench.tasks)
    assert bench.order == ["a", "b", "c", "a", "b", "a"]


async def test_never_more_than_there_is_room_for() -> None:
    bench = Bench(3)
    most = 0

    async def watch() -> None:
        nonlocal most
        while not all(task.done() for task in bench.tasks):
            most = max(most, len(bench.in_hand))
            await asyncio.sleep(0)

    for number in range(30):
        bench.ask(f"user-{number % 10}")
    await watch()
    assert most == 3


@pytest.mark.parametrize("steps", range(6))
async def test_whoever_gives_up_takes_nobodys_turn(steps: int) -> None:
    bench = Bench(1)
    first, second, third = bench.ask("a"), bench.ask("b"), bench.ask("c")
    for _ in range(steps):
        await asyncio.sleep(0)
    second.cancel()
    async with asyncio.timeout(10):
        await first
        await third
    await asyncio.gather(second, return_exceptions=True)  # the last steps let it end before
    again = bench.ask("b")
    async with asyncio.timeout(10):
        await again
