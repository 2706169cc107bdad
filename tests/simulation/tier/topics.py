"""A partition of a topic, its replicas, and the controller's word on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from uuid import UUID

from headrace.core.ports_objects import Done, ObjectStore, OutcomeUnknown
from headrace.testing.simulation.event_queue import EventQueue
from headrace.testing.simulation.faulty_objects import FaultyObjects
from headrace.tier.calls import Call, Outcome, perform
from headrace.tier.jobs import Place
from headrace.tier.local import TierSettings
from headrace.tier.names import Folder, TieredPartition
from headrace.tier.safeguards import TierSafeguards
from tests.simulation.tier.checks import StoreChecks
from tests.simulation.tier.logs import Record
from tests.simulation.tier.replicas import DEADLINE_SECONDS, Broker, Replica, Row


class Topic:
    def __init__(
        self,
        random: Random,
        store: FaultyObjects,
        brokers: Sequence[Broker],
        settings: TierSettings,
        safeguards: TierSafeguards,
    ) -> None:
        self.random = random
        self.settings = settings
        self.events: EventQueue = store.events
        self._store = store
        partition = TieredPartition(self.draw(), 0)
        self.place = Place(Folder.of("cluster", partition), partition, safeguards)
        self.checks = StoreChecks(store.inside, self.place.folder, partition, settings)
        self.heard_ms = random.choice([500, 3_000, 40_000])
        """How long it takes at most until a broker hears what the controller has committed."""
        self.is_deleted = False
        self.error: Exception | None = None
        self._transactions = 0
        self._open: list[int] = []
        everyone = frozenset(each.broker_id for each in brokers)
        self.row = Row(brokers[0].broker_id, 1, everyone)
        self.replicas = [Replica(self, each) for each in brokers]
        for each in self.replicas:
            each.hear(self.row)

    def draw(self) -> UUID:
        return UUID(int=self.random.getrandbits(128))

    def now_ms(self) -> int:
        return self.events.wall_ms()

    # --- the store -------------------------------------------------------------------------------------

    def submit(self, call: Call, answered: Callable[[Outcome], None]) -> None:
        self.checks.on_submitted(call)

        def arrive(store: ObjectStore) -> Outcome:
            now_ms = self.now_ms()
            self.checks.before(call, now_ms)
            outcome = perform(store, call, 0)
            self.checks.after(call, now_ms, is_done=isinstance(outcome, Done))
            return outcome

        def answer(outcome: Outcome | OutcomeUnknown) -> None:
            answered(outcome)

        self._store.submit(arrive, answer, deadline_seconds=DEADLINE_SECONDS)

    # --- the controller --------------------------------------------------------------------------------

    @property
    def leader(self) -> Replica:
        return self.replicas[self.row.leader]

    def is_led(self) -> bool:
        """Its leader runs and knows that it leads."""
        return self.leader.broker.runs and self.leader.row.epoch == self.row.epoch

    def elect(self, *, is_clean: bool) -> None:
        fitting = [
            each.broker.broker_id
            for each in self.replicas
            if each.broker.runs and (each.broker.broker_id in self.row.isr) == is_clean
        ]
        if not fitting:
            return
        leader = self.random.choice(fitting)
        isr = self.row.isr if is_clean else frozenset([leader])
        self.row = Row(leader, self.row.epoch + 1, isr, self.row.is_recovering or not is_clean)
        self.checks.count("elections" if is_clean else "unclean elections")
        for each in self.replicas:
            self.tell(each, self.random.randint(0, self.heard_ms))

    def tell(self, replica: Replica, delay_ms: int) -> None:
        """Later it hears how it is then; never while it is frozen or gone."""

        def hear() -> None:
            if replica.broker.runs:
                replica.hear(self.row)

        self.events.after(delay_ms, hear)

    def on_begun(self, epoch: int) -> None:
        if self.row.epoch == epoch:
            self.row.is_recovering = False

    def change_isr(self) -> None:
        """Drop a member, or take one up that has caught up."""
        if not self.is_led() or not self.leader.machine.is_begun:
            return
        leader, isr = self.leader, self.row.isr
        other = self.random.choice(self.replicas).broker
        if other.broker_id == self.row.leader:
            return
        lags = not other.runs or self.replicas[other.broker_id].row.epoch != self.row.epoch
        if other.broker_id in isr and (lags or self.random.random() < 0.1):
            isr = isr - {other.broker_id}
        elif other.broker_id not in isr and other.runs and leader.caught_up(other.broker_id):
            isr = isr | {other.broker_id}
        self.row.isr = isr
        leader.hear(self.row)

    # --- clients ---------------------------------------------------------------------------------------

    def produce(self, count: int) -> None:
        """Whoever believes that it leads takes records."""
        leaders = [each for each in self.replicas if each.is_leader and each.broker.runs]
        if not leaders:
            return
        leader = self.random.choice(leaders)
        for _ in range(count):
            leader.append(self._record())

    def _record(self) -> Record:
        drawn = self.random.random()
        value = b"x" * self.random.randint(1, 40) + b"%d" % self.random.getrandbits(30)
        record = Record(0, None, None, self.now_ms(), value)
        if drawn < 0.05:
            self._transactions += 1
            self._open.append(self._transactions)
            return record._replace(opens=self._transactions)
        if drawn < 0.15 and self._open:
            return record._replace(ends=self._open.pop(self.random.randrange(len(self._open))))
        return record

    def end_transactions(self) -> None:
        """Also those whose begin was lost, or whose end was."""
        for number in range(1, self._transactions + 1):
            record = Record(0, None, number, self.now_ms(), b"end")
            self.leader.append(record)

    def delete_records(self) -> None:
        if not self.is_led() or not self.leader.machine.is_begun:
            return
        log = self.leader.log
        if log.high_watermark > log.start:
            log.start = self.random.randint(log.start + 1, log.high_watermark)
            self.checks.truth.deleted_until = max(self.checks.truth.deleted_until, log.start)
            self.checks.count("records deleted")

    def delete(self) -> None:
        """Each broker hears of it in its own time; one of them deletes what is in the store."""
        self.is_deleted = True
        self.checks.count("topics deleted")
        chosen = self.random.choice(self.replicas)

        def drop(replica: Replica) -> None:
            if not replica.broker.runs:
                self.events.after(self.heard_ms, lambda: drop(replica))
            elif replica is chosen:
                self.become_deleter(replica)
            else:
                replica.is_gone = True

        for each in self.replicas:
            self.events.after(self.random.randint(0, self.heard_ms), lambda each=each: drop(each))  # type: ignore[misc]  # a default binds it

    def become_deleter(self, replica: Replica) -> None:
        replica.row = replace(replica.row, leader=-1)
        replica.is_deleter = True
        replica.machine.delete(self.draw())

    # --- what happens ----------------------------------------------------------------------------------

    def replicate(self) -> None:
        follower = self.random.choice(self.replicas)
        if not follower.broker.runs or not 0 <= follower.row.leader < len(self.replicas):
            return
        leader = self.replicas[follower.row.leader]
        if leader is not follower and leader.broker.runs:
            follower.follow_from(leader, self.random.randint(1, 12))

    def tick(self) -> None:
        for each in self.replicas:
            each.tick()
            if each.broker.is_alive and not self.is_deleted:
                self.checks.check_covered(each.log, each.name)
