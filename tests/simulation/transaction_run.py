"""Seeds with transactional producers: the same clusters and faults; nothing is read that is not committed.

From FIRST_DAMAGED on the files are damaged that say which transactions were aborted, and what producers have
written: of any replica, and of all of them, since the batches tell what they said.

python -m tests.simulation.transaction_run 0 100
"""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from random import Random

from headrace.log import files
from tests.checker.history import History
from tests.simulation import damage_seeds
from tests.simulation.client import TOPIC
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.damage_seeds import FIRST_DAMAGED, draw_damaged
from tests.simulation.describe import describe
from tests.simulation.faults import Faults
from tests.simulation.generator import Generator, Plan
from tests.simulation.invariants import Invariants
from tests.simulation.retention import NO_RETENTION
from tests.simulation.run import HEALING_SECONDS, Outcome, Run
from tests.simulation.switched_off import switched_off
from tests.simulation.transactional_producer import TransactionalProducer

PROPERTIES = {
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


BESIDE_TRANSACTIONS = {files.TXN_INDEX: 3, files.SNAPSHOT: 2}
"""Which files are damaged, and how often."""


def draw_with_damage(random: Random) -> Plan:
    beside = random.choice(("kill", "bounce", "prefer"))
    return replace(
        draw_damaged(random),
        brokers=3,
        replication=3,
        min_in_sync=2,  # as the internal topics have
        seconds=random.uniform(5.0, 9.0),
        faults=("damage at a stop", "damage at a kill", "copy", beside),
        gap=0.4,
        retention=NO_RETENTION,
        turns=False,
    )


class TransactionRun(Run):
    """As `Run`, with transactional producers beside the idempotent ones."""

    def __init__(self, outcome: Outcome, random: Random, without: str | None = None) -> None:
        plan = self._plan = outcome.plan
        self._outcome = outcome
        properties = PROPERTIES | ({"log.flush.interval.messages": "1"} if plan.synced else {})
        if plan.segment_bytes:
            properties |= damage_seeds.PROPERTIES
        safeguards, controller_safeguards, wholeness = switched_off(without)
        self.cluster = SimulatedCluster(
            random.getrandbits(32),
            brokers=plan.brokers,
            properties=properties,
            safeguards=safeguards,
            controller_safeguards=controller_safeguards,
            wholeness=wholeness,
        )
        self.cluster.trace = outcome.trace
        self._invariants = Invariants(self.cluster, plan.min_in_sync)
        self._history = History(clock=lambda: self.cluster.scheduler.now)
        outcome.history = self._history
        self._faults = Faults(self.cluster, random, synced=plan.synced)
        self._faults.damage.weights = BESIDE_TRANSACTIONS
        self._generator = Generator(plan, self._faults, random)
        self._random = random
        self._producers = []
        self._consumers = []
        self.transactional: list[TransactionalProducer] = []

    def _begin(self) -> None:
        super()._begin()
        for number in range(1, 4):
            self.transactional.append(
                TransactionalProducer(
                    self.cluster,
                    number,
                    self._plan.partitions,
                    self._history,
                    self._plan.pause,
                    raises_epochs=number != 2,
                )
            )

    def _heal(self) -> None:
        for producer in self.transactional:
            producer.finish()
        super()._heal()
        self.cluster.run_until(
            lambda: all(producer.is_done for producer in self.transactional),
            HEALING_SECONDS,
            "every transaction has come to an end for its client",
        )
        for producer in self.transactional:
            producer.result()
        self.cluster.run_until(self._nothing_hangs, HEALING_SECONDS, "no transaction is left open")

    def _nothing_hangs(self) -> bool:
        """Every partition has a leader, which has no open transaction; no marker is on its way."""
        if not self._is_whole():
            return False
        brokers = {int(broker.runtime.broker_id): broker for broker in self.cluster.brokers()}
        if any(len(broker.coordinators.marker_manager) for broker in brokers.values()):
            return False
        topic = next(iter(brokers.values())).metadata.image.topics_by_name[TOPIC]
        logs = [brokers[topic.leader(index)].partitions.get(TOPIC, index).log for index in range(len(topic))]
        return all(log.producers.first_undecided_offset is None for log in logs)


def run_transactions(
    seed: int, *, faults: tuple[str, ...] | None = None, without: str | None = None
) -> Outcome:
    """Never raises what the run found: that is in the outcome. `faults`: these instead of drawn ones."""
    random = Random(seed)
    plan = Plan.draw(random) if seed < FIRST_DAMAGED else draw_with_damage(random)
    outcome = Outcome(seed, plan if faults is None else replace(plan, faults=faults))
    was_enabled = gc.isenabled()
    gc.disable()  # what is collected, and when, must not depend on what ran before
    run = TransactionRun(outcome, random, without)
    try:
        run.go()
    except Exception as error:
        outcome.failure = error
        outcome.state = describe(run.cluster)
    finally:
        outcome.acknowledged = sum(producer.committed for producer in run.transactional)
        run.close()
        if was_enabled:
            gc.enable()
    return outcome


def main() -> None:
    first, last = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(first, last):
        outcome = run_transactions(seed)
        print(outcome, outcome.plan.faults, flush=True)
        if outcome.failure is not None:
            print(f"FAILED seed {seed}: {outcome.failure!r}\n{outcome.state}", flush=True)


if __name__ == "__main__":
    main()
