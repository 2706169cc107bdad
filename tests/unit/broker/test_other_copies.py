"""Whether another replica has what is damaged here: what each answer of it means."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.storage import other_copies
from headrace.broker.storage.other_copies import Copies, DeletedThere, OtherCopies, Refused
from headrace.core.errors import HeadraceError
from headrace.log.range_repair import Unmendable
from headrace.log.read_state import Damage
from headrace.replication.partition import Partition
from tests.unit.log.material import PARTITION, batch_of
from tests.unit.replication.replicas import append, fetch, new_partition, row

OTHER = 2
BATCH, _ = batch_of(b"a")


@pytest.fixture
def leader() -> Partition:
    """Four batches of one record, all of them committed."""
    partition = new_partition()
    partition.assign(row(1, 1, (1, OTHER)), 1, 0.0)
    for _ in range(4):
        append(partition, b"a")
    fetch(partition, OTHER, 4)
    assert partition.high_watermark == 4
    return partition


@pytest.fixture
def lonely() -> Partition:
    """Elected while it alone is in sync, below min.insync.replicas: what of its four batches is committed, it
    does not learn."""
    partition = new_partition(min_insync_replicas=2)
    partition.assign(row(1, 1, (1, OTHER)), 1, 0.0)
    for _ in range(4):
        append(partition, b"a")
    fetch(partition, OTHER, 3)
    partition.assign(row(1, 2, (1,)), 1, 0.0)
    assert partition.high_watermark == 3
    assert not partition.knows_the_end
    return partition


class Other:
    """Another replica. It has batches of one record in `has`, and its log ends at `end`."""

    def __init__(self, has: range, end: int | None) -> None:
        self.has = has
        self.end = end
        self.damaged: set[int] = set()
        self.is_silent = False
        self.is_eligible = False

    async def fetch(self, _: Any, __: Any, offset: int, ___: int) -> tuple[memoryview, int]:
        if self.is_silent:
            raise HeadraceError("no answer")
        if offset in self.damaged:
            raise Refused("damaged there too")
        if offset not in self.has:
            raise DeletedThere("out of range")
        return memoryview(BATCH), offset + 1

    async def log_ends(self, *_: Any) -> dict[tuple[str, int], tuple[int, int]]:
        return {} if self.end is None else {(PARTITION.topic, PARTITION.partition): (1, self.end)}


Asked = Callable[[Other, Partition], Any]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    async def of(other: Other, partition: Partition) -> Copies:
        runtime: Any = SimpleNamespace(loop=asyncio.get_running_loop(), broker_id=1)
        eligible = SimpleNamespace(elr=(OTHER,) if other.is_eligible else ())
        image = SimpleNamespace(topic_by_id=lambda _: SimpleNamespace(exceptional=lambda _: eligible))
        metadata: Any = SimpleNamespace(is_alive=lambda _: True, image=image)
        copies = OtherCopies(runtime, metadata)
        monkeypatch.setattr(copies, "fetch", other.fetch)
        monkeypatch.setattr(other_copies, "log_ends", other.log_ends)
        monkeypatch.setattr(other_copies, "PeerLink", lambda *_: SimpleNamespace(close=lambda: None))
        return await copies.of(partition, [Damage(0, 10, 1, 3, "harmed")])

    return of


async def test_who_gives_all_of_it_has_it(leader: Partition, asked: Asked) -> None:
    assert await asked(Other(range(4), 4), leader) is Copies.WHOLE


async def test_what_retention_has_deleted_there_is_missed_by_nobody(leader: Partition, asked: Asked) -> None:
    assert await asked(Other(range(2, 4), 4), leader) is Copies.WHOLE
    assert await asked(Other(range(0), 4), leader) is Copies.WHOLE


async def test_a_log_that_ends_before_it_has_not_deleted_it(leader: Partition, asked: Asked) -> None:
    """Both answer with an offset out of range. Were the shorter log taken for one that retention has passed,
    this replica would give itself up for it, and with it what is committed."""
    assert await asked(Other(range(1), 1), leader) is Copies.REFUSED
    assert await asked(Other(range(2), 2), leader) is Copies.REFUSED


async def test_who_does_not_say_where_its_log_ends_proves_nothing(leader: Partition, asked: Asked) -> None:
    assert await asked(Other(range(2, 4), None), leader) is Copies.UNKNOWN


async def test_who_is_eligible_to_lead_has_all_that_is_committed(lonely: Partition, asked: Asked) -> None:
    """It cannot come back into sync by itself: what it wants next is what is damaged here."""
    other = Other(range(3), 3)
    assert await asked(other, lonely) is Copies.UNKNOWN, "nobody who could lead is asked"
    other.is_eligible = True
    assert await asked(other, lonely) is Copies.WHOLE


async def test_who_is_eligible_and_ends_before_what_is_committed_is_not_believed(
    lonely: Partition, asked: Asked
) -> None:
    other = Other(range(1), 1)
    other.is_eligible = True
    assert await asked(other, lonely) is Copies.REFUSED


async def test_who_has_it_damaged_does_not_have_it(leader: Partition, asked: Asked) -> None:
    other = Other(range(4), 4)
    other.damaged.add(2)
    assert await asked(other, leader) is Copies.REFUSED


async def test_who_cannot_be_asked_may_have_it(leader: Partition, asked: Asked) -> None:
    other = Other(range(4), 4)
    other.is_silent = True
    assert await asked(other, leader) is Copies.UNKNOWN


def test_a_refusal_is_a_reason_not_to_mend() -> None:
    assert issubclass(Refused, Unmendable)
    assert issubclass(DeletedThere, Unmendable)
