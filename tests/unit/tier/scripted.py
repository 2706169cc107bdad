"""A machine on a store in memory, step by step, with outcomes that a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from uuid import UUID

from headrace.core.ports_objects import Found, OutcomeUnknown
from headrace.testing.simulation.memory_objects import MemoryObjects
from headrace.tier.calls import Call, Outcome, perform
from headrace.tier.jobs import Job, Place
from headrace.tier.knowledge import Result
from headrace.tier.local import TierSettings
from headrace.tier.machine import PartitionTier
from headrace.tier.manifest import Manifest
from headrace.tier.manifest_format import decode
from headrace.tier.names import Folder, TieredPartition
from headrace.tier.segments import EpochStart

PARTITION = TieredPartition(UUID(int=77), 3)
PLACE = Place(Folder.of("cluster", PARTITION), PARTITION)
UNKNOWN = OutcomeUnknown("no answer within 5 s")


@dataclass(slots=True)
class Segment:
    base_offset: int
    next_offset: int
    size: int = 100
    max_timestamp: int = 1_000

    def records(self, base_offset: int) -> Iterable[bytes]:
        return [b"r" * self.size]

    def indexes(self, base_offset: int) -> Iterable[bytes]:
        return [b"index of %d" % base_offset]


@dataclass(slots=True)
class Log:
    """Sealed segments of ten records each, and an active one that is empty."""

    count: int
    start: int = 0
    local_start: int = 0
    epochs: Sequence[EpochStart] = (EpochStart(1, 0),)
    high_watermark: int = field(init=False)
    last_stable_offset: int = field(init=False)

    def __post_init__(self) -> None:
        self.high_watermark = self.last_stable_offset = self.end

    @property
    def end(self) -> int:
        return self.count * 10

    @property
    def sealed(self) -> list[Segment]:
        return [Segment(base, base + 10) for base in range(self.local_start, self.end, 10)]

    def bytes_from(self, offset: int) -> int:
        return sum(each.size for each in self.sealed if each.base_offset >= offset)


class Replica:
    _numbers = count(1)

    def __init__(self, store: MemoryObjects, log: Log, settings: TierSettings | None = None) -> None:
        self.store = store
        self.log = log
        self.now_ms = 0
        self.calls: list[type[Call]] = []
        """Kinds of calls that the store has answered."""
        self.machine = PartitionTier(PLACE, settings or TierSettings(), lambda: UUID(int=next(self._numbers)))

    def lead(self, epoch: int, *, may_lack_committed: bool = False) -> None:
        self.machine.lead(epoch, UUID(int=next(self._numbers)), may_lack_committed=may_lack_committed)

    def take(self) -> Job | None:
        return self.machine.take(self.log, self.now_ms)

    def step(self, fate: Callable[[Call], Outcome | None] = lambda call: None) -> Job | None:
        """One job. `fate` gives the outcome of a call instead of the store."""
        job = self.take()
        if job is not None:
            self.machine.done(job, self.carry_out(job, fate), self.now_ms)
        return job

    def carry_out(self, job: Job, fate: Callable[[Call], Outcome | None]) -> Result:
        steps = job.run()
        try:
            call = next(steps)
            while True:
                given = fate(call)
                if given is None:
                    self.calls.append(type(call))
                call = steps.send(perform(self.store, call, 60.0) if given is None else given)
        except StopIteration as ended:
            result: Result = ended.value
            return result

    def settle(self, most: int = 100) -> None:
        for _ in range(most):
            self.now_ms += 1_000
            if self.step() is None:
                return


def manifest_in(store: MemoryObjects) -> Manifest:
    found = store.get(PLACE.folder.manifest, deadline_seconds=0)
    assert isinstance(found, Found)
    return decode(found.data, PARTITION)
