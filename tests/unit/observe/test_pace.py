"""When the next look comes, and what is said while one has not ended."""

from __future__ import annotations

import asyncio
import time

import pytest

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.doctor.model import Unknown
from headrace.observe.ends import AllEnds
from headrace.observe.look import Look
from headrace.observe.pace import LATE_SECONDS, Pace
from headrace.observe.poller import Poller
from tests.unit.observe.made_up import small_look


@pytest.mark.parametrize(("took", "rest"), [(0.5, 4.5), (1.0, 4.0), (8.0, 32.0)])
def test_a_huge_cluster_is_looked_at_a_fifth_of_the_time(took: float, rest: float) -> None:
    assert Pace(5.0).rest(took, is_whole=True) == rest


def test_a_look_that_waited_for_a_silent_broker_delays_the_next_one_by_no_more_than_the_interval() -> None:
    """It took 15 s of time-outs, and pages were a minute behind when the broker was back."""
    pace = Pace(5.0)
    pace.rest(0.2, is_whole=True)
    assert pace.rest(15.0, is_whole=False) == 5.0


def test_a_silent_broker_makes_looks_at_a_huge_cluster_no_more_frequent() -> None:
    pace = Pace(5.0)
    pace.rest(8.0, is_whole=True)
    assert pace.rest(13.0, is_whole=False) == 32.0
    assert not pace.is_late(23.0)
    assert pace.is_late(25.0)


class Looks:
    def __init__(self, *looks: Look | None) -> None:
        self.left = list(looks)
        self.may_end = asyncio.Event()

    async def look(self) -> Look:
        await self.may_end.wait()
        found = self.left.pop(0)
        if found is None:
            raise ClientFailure("nobody answers")
        return found


def poller_of(*looks: Look | None) -> tuple[Poller, Looks]:
    made = Looks(*looks)
    poller = Poller(Cluster("127.0.0.1:1"))
    poller._looker = made  # type: ignore[assignment]
    return poller, made


def said(poller: Poller) -> str:
    return "" if poller.overdue is None else poller.overdue.reason


async def test_while_a_look_does_not_end_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    poller, looks = poller_of(small_look())
    task = asyncio.create_task(poller.once())
    await asyncio.sleep(0)
    assert said(poller) == ""
    later = time.monotonic() + LATE_SECONDS + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert "has waited for answers since" in said(poller)
    monkeypatch.undo()
    looks.may_end.set()
    assert await task
    assert said(poller) == ""


async def test_what_brokers_left_without_an_answer_is_no_whole_look() -> None:
    whole = small_look()
    silent = whole._replace(all_ends=AllEnds(whole.all_ends.ends, {2: "it does not answer"}))
    unjudged = whole._replace(health=Unknown("cluster status"))
    poller, looks = poller_of(whole, silent, unjudged, None)
    looks.may_end.set()
    assert [await poller.once() for _ in range(4)] == [True, False, False, False]
    assert poller.failing is not None
