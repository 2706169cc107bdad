"""So many threads work at a time as the setting says at that moment."""

from __future__ import annotations

import asyncio
import threading

import pytest

from headrace.broker.tiering.thread_limit import LimitedThreads


async def test_no_more_work_than_the_limit_says_and_more_once_it_is_raised() -> None:
    limit, go_on, at_work = 2, threading.Event(), threading.Semaphore(0)
    threads = LimitedThreads(asyncio.get_running_loop(), "test", lambda: limit)

    def work() -> int:
        at_work.release()
        go_on.wait(30)
        return threading.get_ident()

    futures = [threads.run(work) for _ in range(5)]
    for _ in range(2):
        assert await asyncio.to_thread(at_work.acquire, timeout=30)
    assert not at_work.acquire(blocking=False)
    limit = 4
    futures.append(threads.run(work))
    for _ in range(2):
        assert await asyncio.to_thread(at_work.acquire, timeout=30)
    assert not at_work.acquire(blocking=False)
    go_on.set()
    assert len(await asyncio.gather(*futures)) == 6
    threads.close()


async def test_what_fails_says_so_and_the_next_has_its_turn() -> None:
    threads = LimitedThreads(asyncio.get_running_loop(), "test", lambda: 1)

    def fail() -> None:
        raise OSError("the disk")

    failed, after = threads.run(fail), threads.run(lambda: 5)
    with pytest.raises(OSError, match="the disk"):
        await failed
    assert await after == 5
    threads.close()


async def test_what_waits_is_given_up_when_it_is_closed() -> None:
    threads, go_on = LimitedThreads(asyncio.get_running_loop(), "test", lambda: 1), threading.Event()
    running, waiting = threads.run(lambda: go_on.wait(30)), threads.run(lambda: 5)
    go_on.set()
    threads.close()
    assert waiting.cancelled()
    assert await running
