"""Who works long has slices of the loop, and leaves most of it to others while they send."""

from __future__ import annotations

import asyncio
import time

from headrace.broker.runtime.turns import REST, SLICE_SECONDS, Turns

SLICES = 20


class Bench:
    """Workers whose steps take as long as they are told, by the clock of the loop."""

    def __init__(self) -> None:
        self.received = 0
        self.turns = Turns(asyncio.get_running_loop(), self, lambda: self.received)
        self.steps: list[tuple[str, float, float]] = []
        """Who, from when, until when."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall_ms(self) -> int:
        return 0

    async def work(self, name: str = "", slices: int = SLICES, seconds: float = 2 * SLICE_SECONDS) -> None:
        for _ in range(slices):
            await self.turns.next()
            began = time.monotonic()
            while not self.turns.is_over or time.monotonic() < began + seconds:
                pass
            self.steps.append((name, began, time.monotonic()))

    async def send(self) -> None:
        """Somebody else does, all the time."""
        while True:
            self.received += 100
            await asyncio.sleep(0)

    def rests(self) -> list[float]:
        """Between two slices, in lengths of the first of them."""
        return [
            (then[1] - step[2]) / (step[2] - step[1])
            for step, then in zip(self.steps, self.steps[1:], strict=False)
        ]


async def test_long_requests_get_a_quarter_of_the_loop_while_others_send() -> None:
    bench = Bench()
    others = asyncio.create_task(bench.send())
    await bench.work()
    others.cancel()
    assert min(bench.rests()) >= REST * 0.99


async def test_a_slice_that_takes_long_is_followed_by_as_much_longer_a_rest() -> None:
    bench = Bench()
    others = asyncio.create_task(bench.send())
    await bench.work(slices=3, seconds=0.03)
    others.cancel()
    assert min(step[2] - step[1] for step in bench.steps) >= 0.03
    assert min(bench.rests()) >= REST * 0.99


async def test_nobody_rests_while_nobody_sends() -> None:
    bench = Bench()
    await bench.work()
    assert sorted(bench.rests())[SLICES // 2] < 1, "most of them, on a machine with other work"


async def test_several_have_slices_one_after_the_other() -> None:
    bench = Bench()
    others = asyncio.create_task(bench.send())
    async with asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(bench.work(name, 4))
    others.cancel()
    assert "".join(step[0] for step in bench.steps) == "abc" * 4
    assert min(bench.rests()) >= REST * 0.99, "together"


async def test_what_a_worker_waits_for_elsewhere_is_no_part_of_its_slice() -> None:
    bench = Bench()
    others = asyncio.create_task(bench.send())
    await bench.work(slices=1)
    await asyncio.sleep(0.3)
    began = time.monotonic()
    await bench.turns.next()
    others.cancel()
    assert time.monotonic() - began < 0.9, "which would be a rest of three times what it waited"


async def test_one_who_was_cancelled_is_passed_over() -> None:
    bench = Bench()
    waiting = [asyncio.create_task(bench.work(name, 2)) for name in "abc"]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait(waiting)
    assert "".join(step[0] for step in bench.steps) == "bcbc"
    await bench.work("d", 1)
    assert bench.steps[-1][0] == "d", "and there are slices later on"
