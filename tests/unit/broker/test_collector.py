"""What lives on is not looked at again and again, and what does not is not kept for ever."""

from __future__ import annotations

import asyncio
import gc
import importlib
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from headrace.broker.process import collector as module
from headrace.broker.process.collector import MANY_GONE, MOST_FREEZES, THAW_SECONDS, Collector

ALWAYS, NEVER = -1.0, 1e9


class Knot:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.itself = self


class Loop:
    """Time that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: Any = None

    def time(self) -> float:
        return self.now

    def call_at(self, _when: float, callback: Any, *args: Any) -> None:
        self.due = partial(callback, *args)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.due()


class Broker:
    def __init__(self, long_seconds: float) -> None:
        self.loop = Loop()
        self.partitions = 5000
        loop: Any = self.loop
        self.collector = Collector(loop, lambda: self.partitions, long_seconds)
        self.collector.start()


@pytest.fixture
def make() -> Iterator[Any]:
    made: list[Broker] = []
    others = list(gc.callbacks)

    def make(long_seconds: float) -> Broker:
        made.append(Broker(long_seconds))
        return made[-1]

    yield make
    for each in made:
        is_frozen = gc.get_freeze_count() > 0
        each.collector.stop()
        assert (gc.get_freeze_count() > 0) is is_frozen, "the end of the process need not look at it"
    gc.unfreeze()  # a broker ends with its process, this one does not
    assert gc.callbacks == others


def frozen_knot() -> weakref.ref[Knot]:
    """Garbage, after it was frozen."""
    knot = Knot()
    gc.collect()
    found = weakref.ref(knot)
    del knot
    gc.collect()
    return found


def test_survivors_of_a_long_collection_are_not_looked_at_again(make: Any) -> None:
    make(ALWAYS)
    kept = [Knot() for _ in range(1000)]
    gc.collect()
    # The count of what is frozen would not do: whatever was frozen before may go meanwhile.
    looked_at = {id(each) for each in gc.get_objects()}
    assert not any(id(each) in looked_at for each in kept)
    assert gc.get_count()[2] == 0
    assert len(gc.get_objects(generation=2)) < len(kept)


def test_short_collections_and_those_of_the_young_freeze_nothing(make: Any) -> None:
    make(NEVER)
    before = gc.get_freeze_count()
    kept = [Knot() for _ in range(1000)]
    gc.collect()
    assert gc.get_freeze_count() <= before
    del kept


def test_a_collection_of_the_young_freezes_nothing(make: Any) -> None:
    make(ALWAYS)
    before = gc.get_freeze_count()
    kept = [Knot() for _ in range(1000)]
    gc.collect(0)
    gc.collect(1)
    assert gc.get_freeze_count() <= before
    del kept


def test_what_became_garbage_goes_after_a_while(make: Any) -> None:
    broker = make(ALWAYS)
    knot = frozen_knot()
    broker.loop.pass_time(THAW_SECONDS - 1)
    assert knot() is not None
    broker.loop.pass_time(2)
    assert knot() is None
    again = frozen_knot()
    broker.loop.pass_time(THAW_SECONDS)
    assert again() is None, "and again"


def test_what_became_garbage_goes_with_the_partitions(make: Any) -> None:
    broker = make(ALWAYS)
    knot = frozen_knot()
    broker.partitions += 2 * MANY_GONE
    broker.loop.pass_time(1)
    broker.partitions -= MANY_GONE - 1
    broker.loop.pass_time(1)
    assert knot() is not None
    broker.partitions -= 1
    broker.loop.pass_time(1)
    assert knot() is None


def test_not_everything_can_be_frozen_bit_by_bit(make: Any) -> None:
    """A collection that takes long each time: from some time on garbage is collected as ever."""
    make(ALWAYS)
    for _ in range(MOST_FREEZES):
        gc.collect()
    assert frozen_knot()() is None


def test_a_broker_that_has_frozen_nothing_since_its_start_is_left_alone(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = make(NEVER)
    thaws: list[None] = []
    monkeypatch.setattr(gc, "unfreeze", lambda: thaws.append(None))
    broker.loop.pass_time(THAW_SECONDS)
    assert not thaws
    broker.partitions -= 1
    broker.loop.pass_time(1)
    assert len(thaws) == 1
    monkeypatch.undo()


async def test_importing_it_installs_nothing() -> None:
    others = list(gc.callbacks)
    importlib.reload(module).Collector(asyncio.get_running_loop(), lambda: 0)
    assert gc.callbacks == others
    assert gc.get_freeze_count() == 0
