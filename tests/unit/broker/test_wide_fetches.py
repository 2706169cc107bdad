"""Few fetches of very many partitions are in hand at once; other brokers do not wait behind consumers."""

from __future__ import annotations

import asyncio

from headrace.broker.fetch.wide_fetches import MOST_IN_HAND, WideFetches


async def test_so_many_are_in_hand_and_the_others_follow_in_their_order() -> None:
    fetches, entered, leave = WideFetches(), list[int](), asyncio.Event()

    async def fetch(number: int) -> None:
        async with fetches.admitted(is_link=False):
            entered.append(number)
            await leave.wait()

    tasks = [asyncio.create_task(fetch(number)) for number in range(3 * MOST_IN_HAND)]
    await asyncio.sleep(0.01)
    assert entered == list(range(MOST_IN_HAND))
    leave.set()
    await asyncio.gather(*tasks)
    assert entered == list(range(3 * MOST_IN_HAND))


async def test_another_broker_does_not_wait() -> None:
    fetches, leave = WideFetches(), asyncio.Event()

    async def fetch() -> None:
        async with fetches.admitted(is_link=False):
            await leave.wait()

    tasks = [asyncio.create_task(fetch()) for _ in range(2 * MOST_IN_HAND)]
    await asyncio.sleep(0.01)
    async with asyncio.timeout(30), fetches.admitted(is_link=True):
        pass
    leave.set()
    await asyncio.gather(*tasks)


async def test_one_that_fails_makes_room() -> None:
    fetches = WideFetches()
    for _ in range(2 * MOST_IN_HAND):
        try:
            async with fetches.admitted(is_link=False):
                raise ValueError
        except ValueError:
            pass
