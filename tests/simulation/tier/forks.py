"""An origin and its forks on a faulty store, from a seed: jobs go on call by call, in any order.

A leader may die between two calls, and be followed by another while its job still goes on, as if it had been
frozen. An answer may be lost before or after the call took effect. What a manifest names is looked for after
every call that reaches the store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from uuid import UUID

from headrace.core.ports_objects import Found, Listing, OutcomeUnknown
from headrace.testing.simulation.memory_objects import MemoryObjects
from headrace.tier.beginning import BeginAt
from headrace.tier.calls import Call, Delete, Outcome, PutIf, Steps, carry_out, perform
from headrace.tier.forking import Fork
from headrace.tier.garbage import (
    Remains,
    delete,
    find_remains,
    find_unmade_forks,
    find_unnamed,
    mark_deleted,
    purge,
)
from headrace.tier.jobs import Place
from headrace.tier.local import TierSettings
from headrace.tier.machine import PartitionTier
from headrace.tier.manifest import Manifest
from headrace.tier.manifest_format import decode, decode_page, stored
from headrace.tier.names import FORKS, Folder, TieredPartition
from headrace.tier.safeguards import TierSafeguards
from headrace.tier.segments import EpochStart, RemoteSegment
from tests.simulation.tier.checks import require
from tests.simulation.tier.run import switched_off
from tests.unit.tier.scripted import Log

CLUSTER = "cluster"
_LOST = OutcomeUnknown("no answer")
_PEACE_STEPS = 2_000


class Running:
    """A thread that carries out a job."""

    def __init__(self, steps: Steps[object], then: Callable[[object], None]) -> None:
        self._steps = steps
        self._then = then
        self.call: Call | None = None
        self._send(None)

    def _send(self, outcome: Outcome | None) -> None:
        try:
            self.call = next(self._steps) if outcome is None else self._steps.send(outcome)
        except StopIteration as ended:
            self.call = None
            self._then(ended.value)

    def go_on(self, outcome: Outcome) -> None:
        self._send(outcome)


class Partition:
    """Of the origin or of a fork, with the replica that leads it now."""

    def __init__(self, world: World, topic_id: UUID, fork: Fork | None) -> None:
        self.world = world
        partition = TieredPartition(topic_id, 0)
        self.place = Place(Folder.of(CLUSTER, partition), partition, world.safeguards, fork)
        self.log = Log(0)
        self.epoch = 0 if fork is None else 1000
        self.is_deleted = False
        self.has_deleter = False
        self.manifest: Manifest | None = None
        self.named: set[str] = set()
        """Keys, as long as the topic is there."""
        self.lead()

    def lead(self) -> None:
        self.epoch += 1
        self.machine = PartitionTier(self.place, self.world.settings, self.world.draw)
        may_lack = self.place.fork is not None and self.log.end == 0
        self.machine.lead(self.epoch, self.world.draw(), may_lack_committed=may_lack)
        self._note_epoch()
        self.thread: Running | None = None

    def _note_epoch(self) -> None:
        if self.log.end == 0:
            self.log.epochs = (EpochStart(self.epoch, 0),)
        elif [each.epoch for each in self.log.epochs[-1:]] != [self.epoch]:
            self.log.epochs = (*self.log.epochs, EpochStart(self.epoch, self.log.end))

    def append(self, segments: int) -> None:
        if self.machine.is_begun and not self.is_deleted:
            self.log.count += segments
            self.log.high_watermark = self.log.last_stable_offset = self.log.end

    def delete(self) -> None:
        self.is_deleted = self.has_deleter = True
        self.named = set()
        self.machine.delete(self.world.draw())
        self.thread = None

    def tick(self) -> None:
        if self.thread is not None and self.thread.call is not None:
            return
        if self.is_deleted and not self.has_deleter:
            return
        machine, log = self.machine, self.log
        if not machine.is_begun:
            found = machine.begin(log)
            if isinstance(found, BeginAt):
                log.count = found.offset // 10
                log.start, log.local_start = found.start, found.offset
                log.high_watermark = log.last_stable_offset = log.end
                log.epochs = found.epochs
                self._note_epoch()
        job = machine.take(log, self.world.now_ms)
        if job is not None:
            self.world.counts[type(job).__name__] += 1
            self.thread = Running(job.run(), lambda result: machine.done(job, result, self.world.now_ms))  # type: ignore[arg-type]  # what the job gave


class World:
    def __init__(self, seed: int, without: str | None) -> None:
        self.random = random = Random(seed)
        self.counts: Counter[str] = Counter()
        self.safeguards: TierSafeguards = switched_off(without)
        self.now_ms = 1_000_000
        self.store = MemoryObjects(lambda: self.now_ms)
        self.settings = TierSettings(
            grace_ms=random.choice([0, 1_000]),
            garbage_age_ms=2_000,
            sweep_ms=random.choice([1_500, 60_000]),
            backoff_ms=50,
            fold_above=random.choice([4, 300]),
            fold_keeps=2,
            collect_at_once=random.choice([1, 3]),
        )
        self.faults = random.choice([0.0, 0.02, 0.1])
        self.zombies: list[Running] = []
        self.origin = Partition(self, self.draw(), None)
        self.forks: list[Partition] = []

    def draw(self) -> UUID:
        return UUID(int=self.random.getrandbits(128), version=4)

    @property
    def partitions(self) -> list[Partition]:
        return [self.origin, *self.forks]

    # --- one call --------------------------------------------------------------------------------------

    def step(self, thread: Running, *, is_zombie: bool = False) -> None:
        assert thread.call is not None
        drawn = self.random.random()
        if drawn < self.faults / 2:
            thread.go_on(_LOST)
            return
        outcome = perform(self.store, thread.call, 0)
        if isinstance(thread.call, PutIf | Delete):
            self.check(thread.call.key)
        thread.go_on(_LOST if drawn < self.faults else outcome)

    def trouble(self) -> None:
        for _ in range(self.random.randint(100, 600)):
            self.now_ms += self.random.randint(0, 60)
            self._act()
            for each in self.partitions:
                each.tick()
            running = [each.thread for each in self.partitions if each.thread is not None]
            running = [each for each in [*running, *self.zombies] if each.call is not None]
            if running:
                self.step(self.random.choice(running))

    def _act(self) -> None:
        chosen = self.random.choice(self.partitions)
        drawn = self.random.random()
        if drawn < 0.15:
            self.origin.append(1)
        elif drawn < 0.20:
            chosen.append(2)
        elif drawn < 0.24 and chosen.machine.is_begun and chosen.log.end > chosen.log.start:
            chosen.log.start = self.random.randint(chosen.log.start + 1, chosen.log.end)
        elif drawn < 0.28:
            self._change_leader(chosen)
        elif drawn < 0.31 and len(self.forks) < 3 and not self.origin.is_deleted:
            self._fork()
        elif drawn < 0.314 or (drawn < 0.325 and chosen is not self.origin):
            if not chosen.is_deleted:
                chosen.delete()
        elif drawn < 0.34:
            self.now_ms += self.random.choice([500, 2_500])
        elif drawn < 0.35:
            self.collect()

    def _change_leader(self, chosen: Partition) -> None:
        """Its job goes on, or has died with it."""
        if chosen.thread is not None and self.random.random() < 0.7:
            self.zombies.append(chosen.thread)
        if chosen.is_deleted:
            chosen.has_deleter = False
            chosen.thread = None
        else:
            chosen.lead()

    def _fork(self) -> None:
        manifest = self.origin.manifest
        if manifest is None:
            return
        borders = [each.next_offset for each in self._segments(manifest, self.origin.place)]
        borders = [each for each in borders if each > manifest.start]
        if borders:
            self.counts["forks"] += 1
            fork = Fork(self.origin.place.partition.topic_id, self.random.choice(borders), None)
            self.forks.append(Partition(self, self.draw(), fork))

    # --- what nobody leads any more ----------------------------------------------------------------------

    def collect(self) -> None:
        """As `headrace tier gc --delete` does it, all at once, without faults."""
        self.counts["gc"] += 1
        for each in self.partitions:
            listing = self.store.list(each.place.folder.prefix, deadline_seconds=0)
            assert isinstance(listing, Listing)
            newest_ms = self.now_ms - self.settings.garbage_age_ms
            if not each.is_deleted:
                garbage = carry_out(self.store, find_unnamed(each.place, listing.objects, newest_ms), 0)
                if isinstance(garbage, list):
                    carry_out(self.store, delete(garbage), 0)
            elif not each.has_deleter:
                remains = carry_out(self.store, find_remains(each.place, listing.objects, newest_ms), 0)
                assert isinstance(remains, Remains)
                if remains.is_due:
                    carry_out(self.store, purge(each.place, remains), 0)
                elif not remains.is_marked and listing.objects:
                    carry_out(self.store, mark_deleted(each.place, remains, self.draw(), self.now_ms), 0)
        self._mark_unmade()
        for key in [*(each.place.folder.manifest for each in self.partitions), *self._gone()]:
            self.check(key)

    def _mark_unmade(self) -> None:
        forks = carry_out(self.store, find_unmade_forks(self.origin.place), 0)
        assert isinstance(forks, list)
        gone = {each.place.partition for each in self.forks if each.is_deleted and not each.has_deleter}
        for place in forks:
            if place.partition in gone:
                remains = carry_out(self.store, find_remains(place, [], 0), 0)
                assert isinstance(remains, Remains)
                carry_out(self.store, mark_deleted(place, remains, self.draw(), self.now_ms), 0)

    def _gone(self) -> list[str]:
        """Of what was named when it was looked at the last time."""
        return [key for each in self.partitions for key in each.named if self._get(key) is None]

    # --- what must hold ----------------------------------------------------------------------------------

    def _get(self, key: str) -> bytes | None:
        found = self.store.get(key, deadline_seconds=0)
        return found.data if isinstance(found, Found) else None

    def _segments(self, manifest: Manifest, place: Place) -> Iterator[RemoteSegment]:
        yield from manifest.oldest
        for page in manifest.pages:
            data = self._get(place.folder.page(page.name))
            require(data is not None, 18, f"{page.name} is named, and is not there")
            assert data is not None
            yield from decode_page(data, place.partition, page)
        yield from manifest.segments

    def check(self, key: str) -> None:
        """After a call that has changed it: what a living topic names is there, as it was written."""
        for each in self.partitions:
            require(key not in each.named or self._get(key) is not None, 18, f"{key} is named, and is gone")
            if key == each.place.folder.manifest:
                data = self._get(key)
                each.manifest = None if data is None else decode(data, each.place.partition)
                self._look(each)

    def _look(self, each: Partition) -> None:
        manifest = each.manifest
        each.named = set()
        if manifest is None or manifest.is_deleted or each.is_deleted:
            return
        folder = manifest.readable(each.place.folder)
        for segment in self._segments(manifest, each.place):
            for key, expected in (
                (folder.records(segment.name), segment.records),
                (folder.indexes(segment.name), segment.indexes),
            ):
                content = self._get(key)
                require(content is not None, 18, f"{key} is named, and is not there")
                assert content is not None
                require(stored(content) == expected, 18, f"{key} is not what was written")
                each.named.add(key)

    def peace(self) -> None:
        """Nothing fails any more. Topics are deleted, the origin first or its forks; nothing is left."""
        self.faults = 0.0
        order = [self.origin, *self.forks] if self.random.random() < 0.5 else [*self.forks, self.origin]
        self.zombies = [each for each in self.zombies if each.call is not None]
        for each in order:
            if not each.is_deleted:
                each.delete()
        for _ in range(_PEACE_STEPS):
            self.now_ms += 100
            if self.random.random() < 0.03:
                self.collect()
            for each in self.partitions:
                each.tick()
            running = [each.thread for each in self.partitions if each.thread is not None]
            for thread in [*running, *self.zombies]:
                if thread.call is not None:
                    self.step(thread)
            left = self._left()
            if not left:
                return
        require(False, 18, f"left: {left[:4]}")

    def _left(self) -> list[str]:
        listing = self.store.list("", deadline_seconds=0)
        assert isinstance(listing, Listing)
        # Who forked a topic that was gone by then may have left a word of it, and nothing else.
        return [each.key for each in listing.objects if not each.key.endswith(f"/{FORKS}")]


def run_forks(seed: int, *, without: str | None = None) -> tuple[Exception | None, Counter[str]]:
    world = World(seed, without)
    try:
        world.trouble()
        world.peace()
    except Exception as failure:  # whatever it is, the seed has failed
        return failure, world.counts
    return None, world.counts
