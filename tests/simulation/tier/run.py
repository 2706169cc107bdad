"""One seed: brokers, a partition, a store with faults, some minutes of virtual time, and then peace."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from headrace.core.ports_objects import Listing
from headrace.testing.simulation.event_queue import EventQueue
from headrace.testing.simulation.faulty_objects import FaultyObjects, StoreFaults
from headrace.tier.local import TierSettings
from headrace.tier.safeguards import ALL_ON, TierSafeguards
from tests.simulation.tier.replicas import Broker
from tests.simulation.tier.topics import Topic

_PEACE_MS = 600_000


class NotHealed(AssertionError):
    """Nothing was broken, and yet the store is not what it should become."""


@dataclass(slots=True)
class Outcome:
    seed: int
    failure: Exception | None = None
    where: str = ""
    counts: dict[str, int] = field(default_factory=dict)


def switched_off(names: str | None) -> TierSafeguards:
    """Everything on, but for this one, or for several with `+` between them. TypeError if there is none."""
    return replace(ALL_ON, **dict.fromkeys([] if names is None else names.split("+"), False))


def run_seed(seed: int, *, without: str | None = None, trace: Callable[[str], None] | None = None) -> Outcome:
    run = Run(seed, switched_off(without), trace)
    outcome = Outcome(seed)
    try:
        run.trouble()
        run.peace()
    except Exception as failure:  # whatever it is, the seed has failed
        outcome.failure = failure
        outcome.where = "".join(traceback.format_exception(failure))
    for topic in run.topics:
        for name, count in topic.checks.counts.items():
            outcome.counts[name] = outcome.counts.get(name, 0) + count
    return outcome


def draw_settings(random: Random) -> TierSettings:
    return TierSettings(
        retention_ms=random.choice([-1, -1, 30_000, 120_000]),
        retention_bytes=random.choice([-1, -1, 2_000, 6_000]),
        local_retention_ms=random.choice([-1, 0, 10_000]),
        local_retention_bytes=random.choice([-1, 0, 600, 2_000]),
        grace_ms=random.choice([10_000, 40_000]),
        garbage_age_ms=random.choice([500, 60_000]),
        sweep_ms=random.choice([300, 3_000, 30_000]),
        refresh_ms=random.choice([1_000, 10_000]),
        backoff_ms=random.choice([100, 2_000]),
        fold_above=random.choice([3, 6, 300]),
        fold_keeps=random.randint(1, 3),
        collect_at_once=random.choice([1, 50]),
    )


def draw_faults(random: Random) -> StoreFaults:
    """Each kind is left out by half of the seeds, so that each is also met without the others."""

    def share(most: float) -> float:
        return random.choice([0.0, random.uniform(0, most)])

    return StoreFaults(
        lost=share(0.2),
        unanswered=share(0.25),
        late=share(0.25),
        stale_listings=share(0.9),
        slowest_ms=random.choice([20, 400, 2_500]),
        latest_ms=random.choice([500, 20_000, 60_000]),
    )


class Run:
    def __init__(self, seed: int, safeguards: TierSafeguards, trace: Callable[[str], None] | None) -> None:
        self.random = random = Random(seed)
        self.safeguards = safeguards
        self._trace = trace
        self.faults = draw_faults(random)
        self.store = FaultyObjects(EventQueue(), Random(random.getrandbits(64)), self.faults)
        self.brokers = [Broker(each, random.randint(2, 9)) for each in range(random.choice([2, 3, 3]))]
        self.settings = draw_settings(random)
        self.topics: list[Topic] = []
        self.steps = random.randint(150, 500)
        self.pace_ms = random.choice([40, 400, 1_500])
        self._actions = self._draw_actions()
        self._add_topic()

    @property
    def topic(self) -> Topic:
        return self.topics[-1]

    def _add_topic(self) -> None:
        self.topics.append(Topic(self.random, self.store, self.brokers, self.settings, self.safeguards))

    def _draw_actions(self) -> list[tuple[Callable[[], None], float]]:
        def weight(most: float) -> float:
            return self.random.choice([0.0, self.random.uniform(0, most), most])

        return [
            (lambda: self.topic.produce(self.random.randint(1, 6)), 12.0),
            (lambda: self.topic.replicate(), 25.0),
            (lambda: self.topic.change_isr(), 6.0),
            (lambda: self.topic.elect(is_clean=True), weight(2.0)),
            (lambda: self.topic.elect(is_clean=False), weight(1.0)),
            (self._crash, weight(1.0)),
            (self._start_again, 2.0),
            (self._freeze, weight(1.5)),
            (self._thaw, 1.5),
            (lambda: self.topic.delete_records(), weight(0.6)),
            (self._switch_store, weight(0.4)),
            (self._wait_long, weight(0.6)),
            (self._make_topic_again, weight(0.03)),
        ]

    # --- faults ----------------------------------------------------------------------------------------

    def _crash(self) -> None:
        broker = self.random.choice(self.brokers)
        broker.is_alive = broker.is_frozen = False
        broker.boot += 1
        broker.thawed.clear()

    def _start_again(self) -> None:
        for broker in self.brokers:
            if not broker.is_alive:
                self._restart(broker)
                return

    def _restart(self, broker: Broker) -> None:
        broker.is_alive = True
        for topic in self.topics:
            replica = topic.replicas[broker.broker_id]
            replica.restart()
            if replica.is_deleter:
                topic.become_deleter(replica)
            elif not topic.is_deleted:
                topic.tell(replica, self.random.randint(0, topic.heard_ms))

    def _freeze(self) -> None:
        broker = self.random.choice(self.brokers)
        broker.is_frozen = broker.is_alive

    def _thaw(self) -> None:
        frozen = [each for each in self.brokers if each.is_frozen]
        if frozen:
            self._go_on(self.random.choice(frozen))

    def _go_on(self, broker: Broker) -> None:
        """It goes on where it stood, and hears how things are a while later."""
        broker.is_frozen = False
        waiting, broker.thawed = broker.thawed, []
        for event in waiting:
            event()
        if not self.topic.is_deleted:
            self.topic.tell(
                self.topic.replicas[broker.broker_id], self.random.randint(0, self.topic.heard_ms)
            )

    def _switch_store(self) -> None:
        self.faults.is_down = not self.faults.is_down

    def _wait_long(self) -> None:
        until_ms = self.store.events.now_ms + self.random.randint(5_000, 90_000)
        while self.store.events.now_ms < until_ms:
            self._pass(2_000)

    def _make_topic_again(self) -> None:
        self.topic.delete()
        self._add_topic()

    # --- time ------------------------------------------------------------------------------------------

    def _pass(self, milliseconds: int) -> None:
        self.store.events.run_until(self.store.events.now_ms + milliseconds)
        for topic in self.topics:
            topic.tick()

    def trouble(self) -> None:
        actions, weights = zip(*self._actions, strict=True)
        for _ in range(self.steps):
            (action,) = self.random.choices(actions, weights)
            action()
            self._pass(self.random.randint(1, self.pace_ms))
            if self._trace is not None:
                self._trace(self.describe())

    def describe(self) -> str:
        row, checks = self.topic.row, self.topic.checks
        parts = [
            f"{each.name}{'' if each.broker.runs else ' (off)'} epoch {each.row.epoch}"
            f" {each.log.local_start}..{each.log.high_watermark}..{each.log.end} {each.machine.stopped or ''}"
            for each in self.topic.replicas
        ]
        at = self.store.events.now_ms
        return f"{at} {row} tier {checks.start}..{checks.next_offset} | {' | '.join(parts)}"

    def peace(self) -> None:
        """Everything runs and answers. What should be in the store gets there, and all else goes."""
        self.faults.is_down = False
        self.faults.lost = self.faults.unanswered = self.faults.late = self.faults.stale_listings = 0.0
        self.faults.slowest_ms = 20
        for broker in self.brokers:
            if not broker.is_alive:
                self._restart(broker)
            elif broker.is_frozen:
                self._go_on(broker)
        self._pass(50_000)
        self.topic.elect(is_clean=True)
        self._pass(50_000)
        until_ms = self.store.events.now_ms + _PEACE_MS
        has_ended = False
        while self.store.events.now_ms < until_ms:
            for _ in range(6):
                self.topic.replicate()
            if self.topic.leader.machine.is_begun and not has_ended:
                self.topic.end_transactions()
                has_ended = True
            self._pass(2_000)
            wrong = self._wrong()
            if wrong is None:
                return
        raise NotHealed(f"{wrong}; {self.describe()}")

    def _wrong(self) -> str | None:
        """What is not yet as it should be."""
        topic = self.topic
        log, machine, checks = topic.leader.log, topic.leader.machine, topic.checks
        sealed_until = log.sealed[-1].next_offset if log.sealed else 0
        if log.high_watermark < log.end or log.last_stable_offset < log.high_watermark:
            return f"committed to {log.high_watermark} of {log.end}"
        if checks.next_offset < sealed_until and log.start < sealed_until:
            return f"the store ends at {checks.next_offset}, sealed is {sealed_until}: {machine.stopped}"
        if checks.manifest is not None and checks.start < log.start:
            return f"the manifest starts at {checks.start}, the log at {log.start}"
        for each in topic.replicas:
            if each.machine.local_until(each.log, topic.now_ms()) > each.log.local_start:
                return f"{each.name} still has what may go"
        return next(filter(None, map(self._garbage_of, self.topics)), None)

    def _garbage_of(self, topic: Topic) -> str | None:
        folder, checks = topic.place.folder, topic.checks
        listing = self.store.inside.list(folder.prefix, deadline_seconds=0)
        assert isinstance(listing, Listing)
        found = {each.key for each in listing.objects}
        if topic.is_deleted:
            return None if any(each.machine.is_purged for each in topic.replicas) else "a topic is not purged"
        if checks.manifest is None:
            return None
        wanted = {folder.manifest} | {folder.page(each.name) for each in checks.manifest.pages}
        for each in checks.segments:
            wanted |= {folder.records(each.name), folder.indexes(each.name)}
        if found != wanted:
            return f"garbage: {sorted(found ^ wanted)[:3]}"
        return "removed is not empty" if checks.manifest.removed else None
