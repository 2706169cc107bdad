"""The sentinel itself: it speaks where a broker's loop waits, and only there."""

from __future__ import annotations

import os
import time
from pathlib import Path

from headrace.testing.cluster import Cluster
from tests.loop_sentinel import TURN_SECONDS, Sentinel


def _sync(path: Path) -> None:
    with path.open("wb") as file:
        os.fsync(file.fileno())


def _sync_by(product: Path) -> object:
    """A function whose code seems to lie in the product."""
    code = "import os\ndef sync(path):\n    with open(path, 'wb') as file:\n        os.fsync(file.fileno())\n"
    names: dict[str, object] = {}
    exec(compile(code, str(product), "exec"), names)
    return names["sync"]


def test_a_sync_on_the_loop_of_a_broker_is_told_by_its_callers(sentinel: Sentinel, tmp_path: Path) -> None:
    product = _sync_by(tmp_path / "headrace" / "log" / "wrong.py")
    with Cluster() as cluster:
        cluster.call(lambda: product(tmp_path / "one"))  # type: ignore[operator]
    found, sentinel.found = sentinel.found, []
    assert len(found) == 1
    assert "os.fsync by log.wrong.sync" in found[0]


def test_what_a_test_does_itself_and_what_threads_do_is_not_counted(
    sentinel: Sentinel, tmp_path: Path
) -> None:
    product = _sync_by(tmp_path / "headrace" / "log" / "right.py")
    with Cluster() as cluster:
        cluster.call(lambda: _sync(tmp_path / "one"))
        loop = cluster.broker.runtime.loop
        cluster.run(_in_thread(loop, product, tmp_path / "two"))
    assert sentinel.found == []


async def _in_thread(loop: object, function: object, *args: object) -> None:
    await loop.run_in_executor(None, function, *args)  # type: ignore[attr-defined]


def test_a_turn_that_takes_long_is_told(sentinel: Sentinel, short_turns: None) -> None:
    def work() -> None:
        began = time.thread_time()
        while time.thread_time() - began < 2 * TURN_SECONDS:
            pass

    with Cluster() as cluster:
        sentinel.found.clear()  # what a start takes is not what this is about
        cluster.call(work)
        found, sentinel.found = sentinel.found, []
        cluster.call(lambda: time.sleep(2 * TURN_SECONDS))  # the clock alone says nothing
        assert sentinel.found == []
    sentinel.found = []
    assert len(found) == 1
    assert "a turn of the loop of a broker took" in found[0]
