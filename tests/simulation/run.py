"""One seed from beginning to end: a cluster, clients, faults, healing, liveness, final reads, the verdict."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from headrace.replication.replica import Role
from headrace.testing.simulation.virtual_time import SimulationFailed
from tests.checker.check import Settings, check
from tests.checker.history import History
from tests.simulation.client import TOPIC, SimulatedClient
from tests.simulation.cluster import DATA, MORE, SimulatedCluster
from tests.simulation.consumer import SimulatedConsumer
from tests.simulation.damage_seeds import FIRST_DAMAGED, PROPERTIES, draw_damaged
from tests.simulation.describe import describe
from tests.simulation.events import broker_events
from tests.simulation.faults import Faults
from tests.simulation.generator import Generator, Plan
from tests.simulation.invariants import Invariants
from tests.simulation.producer import SimulatedProducer
from tests.simulation.switched_off import switched_off
from tests.simulation.themes import FIRST_THEMED, draw_themed

START_SECONDS: Final = 30.0
HEALING_SECONDS: Final = 60.0
READING_SECONDS: Final = 30.0
READINGS: Final = 3


class AnomalyFound(SimulationFailed):
    """The checker has found something in what clients saw."""


@dataclass(slots=True)
class Outcome:
    seed: int
    plan: Plan
    fingerprint: int = 0
    virtual_seconds: float = 0.0
    frames: int = 0
    acknowledged: int = 0
    leaderships: int = 0
    damages: int = 0
    failure: BaseException | None = None
    state: str = ""
    """The cluster at the end, if the run failed."""
    trace: list[str] = field(default_factory=list)
    history: History | None = None

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.fingerprint:08x}, {self.virtual_seconds:.1f} s, {self.frames} frames,"
            f" {self.acknowledged} acknowledged, {self.leaderships} leaderships"
        )


def run_seed(
    seed: int,
    *,
    without: str | None = None,
    on_event: Callable[[str], None] | None = None,
    plan: Plan | None = None,
) -> Outcome:
    """Never raises what the run found: that is in the outcome."""
    random = Random(seed)
    if seed < FIRST_THEMED:
        drawn = Plan.draw(random)
    else:
        drawn = draw_themed(random) if seed < FIRST_DAMAGED else draw_damaged(random)
    outcome = Outcome(seed, plan or drawn)
    was_enabled = gc.isenabled()
    gc.disable()  # what is collected, and when, must not depend on what ran before
    run = Run(outcome, random, without, on_event)
    try:
        with broker_events(None if on_event is None else run.cluster.tell):
            run.go()
    except Exception as error:
        outcome.failure = error
        outcome.state = describe(run.cluster)
    finally:
        run.close()
        if was_enabled:
            gc.enable()
    return outcome


class Run:
    def __init__(
        self, outcome: Outcome, random: Random, without: str | None, on_event: Callable[[str], None] | None
    ) -> None:
        plan = self._plan = outcome.plan
        self._outcome = outcome
        safeguards, controller_safeguards, wholeness = switched_off(without)
        self.cluster = SimulatedCluster(
            random.getrandbits(32),
            brokers=plan.brokers,
            directories=(DATA, MORE)[: plan.directories],
            properties=PROPERTIES if plan.segment_bytes else None,
            safeguards=safeguards,
            controller_safeguards=controller_safeguards,
            wholeness=wholeness,
        )
        self.cluster.trace = outcome.trace
        self.cluster.on_event = on_event
        self._invariants = Invariants(self.cluster, plan.min_in_sync, plan.retention)
        self._history = History(clock=lambda: self.cluster.scheduler.now)
        outcome.history = self._history
        self._faults = Faults(self.cluster, random, synced=plan.synced, min_in_sync=plan.min_in_sync)
        self._faults.damage.condemn = self._invariants.condemn
        self._generator = Generator(plan, self._faults, random)
        self._random = random
        self._producers: list[SimulatedProducer] = []
        self._consumers: list[SimulatedConsumer] = []

    def go(self) -> None:
        try:
            self._begin()
            self._suffer()
            self._heal()
            self._read_everything()
            if self._plan.turns:
                self._take_turns()
        finally:
            outcome, cluster = self._outcome, self.cluster
            outcome.fingerprint = cluster.network.fingerprint
            outcome.virtual_seconds = cluster.scheduler.now
            outcome.frames = cluster.network.frames
            outcome.acknowledged = sum(producer.acknowledged for producer in self._producers)
            outcome.leaderships = self._invariants.counts.get("leaderships", 0)
            outcome.damages = self._faults.damage.count
        verdict = check(self._history, Settings(deleted_before=self._invariants.condemned()))
        if not verdict.valid:
            raise AnomalyFound(str(verdict))

    def close(self) -> None:
        """Nobody runs any more, so what is unwound now can do nothing."""
        self.cluster.scheduler.bury()

    def _clients(self) -> list[SimulatedProducer | SimulatedConsumer]:
        return [*self._producers, *self._consumers]

    # --- phases ---

    def _begin(self) -> None:
        cluster, plan = self.cluster, self._plan
        cluster.start()
        admin = SimulatedClient(cluster, "admin")
        creation = admin.loop.create_task(admin.create_topic(plan.partitions, plan.replication, plan.configs))
        cluster.run_until(creation.done, START_SECONDS, "the topic exists")
        creation.result()
        for number in range(1, plan.producers + 1):
            self._producers.append(
                SimulatedProducer(
                    cluster,
                    number,
                    plan.partitions,
                    self._history,
                    plan.pause,
                    self._invariants.on_acknowledged,
                    stamped=plan.segment_bytes > 0,
                )
            )
        for number in range(1, plan.consumers + 1):
            consumer = SimulatedConsumer(
                cluster,
                f"consumer-{number}",
                plan.partitions,
                self._history,
                self._invariants,
                small=number == 2,
            )
            consumer.start()
            self._consumers.append(consumer)

    def _suffer(self) -> None:
        cluster = self.cluster
        end = cluster.scheduler.now + self._plan.seconds
        while cluster.scheduler.now < end:
            cluster.run_for(min(self._generator.next_gap(), end - cluster.scheduler.now))
            self._clear_suspicions()
            done = self._generator.strike()
            if done is not None:
                cluster.tell(f"*** {done}")

    def _clear_suspicions(self) -> None:
        """A host is trusted again once it is among those in sync, everywhere, since its last loss."""
        rows = [committed.row for committed in self._invariants.committed.values()]
        for host in self.cluster.hosts:
            for key in list(host.damaged):
                if self._invariants.is_whole(host, key):
                    del host.damaged[key]
                    self.cluster.tell(f"{key[0]}-{key[1]} at {host.name} is whole again")
            if host.disk.failed_syncs or host.disk.refuses_to_sync:
                continue  # what it will lose is lost when it starts again
            if host.is_suspect and host.broker is not None and self._invariants.is_registered(host.broker):
                mine = [row for row in rows if row is not None and host.broker_id in row.replicas]
                host.is_suspect = not all(host.broker_id in row.isr for row in mine)
                host.is_emptied = host.is_emptied and host.is_suspect

    def _heal(self) -> None:
        """Liveness: everybody is unfenced and in sync, metadata agrees, every write is decided."""
        cluster = self.cluster
        cluster.tell("*** everything is healed")
        self._faults.over()
        for producer in self._producers:
            producer.finish()
        for consumer in self._consumers:
            consumer.finish()
        cluster.run_until(self._is_whole, HEALING_SECONDS, "the cluster is whole again")
        cluster.run_until(
            lambda: all(client.is_done for client in self._clients()),
            HEALING_SECONDS,
            "every write is decided",
        )

    def _is_whole(self) -> bool:
        brokers = self.cluster.brokers()
        if len(brokers) < len(self.cluster.hosts) or not all(
            host.process is not None and host.process.is_ready for host in self.cluster.hosts
        ):
            return False
        if any(broker.metadata.store.end != self.cluster.ensemble.end for broker in brokers):
            return False
        image = brokers[0].metadata.image
        if any(image.brokers[broker.runtime.broker_id].fenced for broker in brokers):
            return False
        topic = image.topics_by_name[TOPIC]
        for index in range(len(topic)):
            if sorted(topic.isr(index)) != sorted(topic.replicas(index)) or topic.leader(index) < 0:
                return False
            if topic.exceptional(index).adding or topic.exceptional(index).removing:
                return False
            leader = self.cluster.hosts[topic.leader(index) - 1].broker
            assert leader is not None
            partition = leader.partitions.find(TOPIC, index)
            if partition is None or partition.role != Role.LEADER:
                return False
        return True

    def _read_everything(self) -> None:
        """Until it was read while the cluster was whole.

        A connection may be stalled for seconds more when everything is healed. What comes of it is a leader
        that was replaced and does not know it yet, whose end may be behind what another has acknowledged.
        """
        for number in range(1, READINGS + 1):
            self._read_once("final" if number == 1 else f"final-{number}")
            if self._is_whole():
                return
            self.cluster.run_until(self._is_whole, HEALING_SECONDS, "the cluster is whole again")
        raise SimulationFailed(f"the cluster did not stay whole during any of {READINGS} readings")

    def _take_turns(self) -> None:
        """Each broker is away once, and everything is read from those that are left."""
        for host in self.cluster.hosts:
            host.kill()
            self._read_once(f"without {host.name}")
            host.start()
            self.cluster.run_until(self._is_whole, HEALING_SECONDS, "the cluster is whole again")

    def _read_once(self, name: str) -> None:
        reader = SimulatedConsumer(self.cluster, name, self._plan.partitions, self._history, self._invariants)
        self._consumers.append(reader)
        reader.start_final_reads()
        self.cluster.run_until(lambda: reader.is_done, READING_SECONDS, "everything is read")
        assert reader.task is not None
        reader.task.result()
