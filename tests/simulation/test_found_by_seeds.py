"""What seeds have found, each reduced to the few steps that it took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from headrace.broker.cluster.description import decode
from headrace.controller.topic_image import PartitionState
from headrace.core.errors import StorageError
from tests.checker.history import History
from tests.simulation.client import TOPIC, SimulatedClient
from tests.simulation.cluster import SimulatedCluster, SimulatedHost
from tests.simulation.invariants import Invariants
from tests.simulation.producer import SimulatedProducer
from tests.simulation.switched_off import switched_off


class Scene:
    """Three brokers, one partition on all of them, ten records in it, and every invariant watched."""

    def __init__(
        self,
        brokers: int = 3,
        partitions: int = 1,
        configs: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        without: str | None = None,
    ) -> None:
        safeguards, controller_safeguards, wholeness = switched_off(without)
        self.cluster = cluster = SimulatedCluster(
            1,
            brokers=brokers,
            properties=properties,
            safeguards=safeguards,
            controller_safeguards=controller_safeguards,
            wholeness=wholeness,
        )
        self.invariants = Invariants(cluster, min_in_sync=2)
        self._partitions = partitions
        self._producers: list[SimulatedProducer] = []
        cluster.start()
        admin = SimulatedClient(cluster, "admin")
        wanted = {"min.insync.replicas": "2"} | dict(configs or {})
        creation = admin.loop.create_task(admin.create_topic(partitions, brokers, wanted))
        cluster.run_until(creation.done, 30, "the topic exists")
        self.write(10)
        cluster.run_until(self.is_whole, 30, "all of them have everything")

    def write(self, count: int) -> None:
        number = len(self._producers) + 1
        producer = SimulatedProducer(
            self.cluster, number, self._partitions, History(), 0.01, self.invariants.on_acknowledged
        )
        self._producers.append(producer)
        self.cluster.run_until(lambda: producer.acknowledged >= count, 30, "the records are acknowledged")
        producer.finish()
        self.cluster.run_until(lambda: producer.is_done, 30, "the producer has ended")

    def acknowledged(self) -> int:
        return sum(producer.acknowledged for producer in self._producers)

    def row(self, partition: int = 0) -> PartitionState:
        """As whoever has the newest metadata sees it."""
        newest = max(self.cluster.brokers(), key=lambda broker: broker.metadata.store.end)
        return newest.metadata.image.topics_by_name[TOPIC].state(partition)

    def in_sync(self) -> int:
        """In the partition where the fewest are."""
        return min(len(self.row(index).isr) for index in range(self._partitions))

    def followers(self) -> list[SimulatedHost]:
        return [host for host in self.cluster.hosts if host.broker_id != self.row().leader]

    def active_controllers(self) -> list[SimulatedHost]:
        return [
            host
            for host in self.cluster.hosts
            if host.broker is not None and host.broker.controller.is_active
        ]

    def is_whole(self) -> bool:
        if not all(host.process is not None and host.process.is_ready for host in self.cluster.hosts):
            return False
        brokers = self.cluster.brokers()
        ends = {broker.metadata.store.end for broker in brokers}
        return self.in_sync() == len(self.cluster.hosts) and ends == {self.cluster.ensemble.end}


@contextmanager
def scene(
    brokers: int = 3,
    partitions: int = 1,
    configs: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    without: str | None = None,
) -> Iterator[Scene]:
    made = Scene(brokers, partitions, configs, properties, without)
    try:
        yield made
    finally:
        made.cluster.scheduler.bury()


def test_a_controller_that_was_deposed_in_silence_hears_of_it() -> None:
    """Its session lives and it has nothing to commit: it once stayed the active controller for ever, beside
    another."""
    with scene() as it:
        (old,) = it.active_controllers()
        others = [host for host in it.cluster.hosts if host is not old]
        for other in others:
            it.cluster.network.cut(old.name, other.name)
        it.cluster.run_until(lambda: it.cluster.ensemble.epoch > 0, 20, "another becomes controller")
        it.cluster.network.heal()
        it.cluster.run_until(
            lambda: it.active_controllers() != [] and old not in it.active_controllers(), 5, "it resigns"
        )
        it.cluster.run_until(it.is_whole, 20, "everybody follows the new one")
        assert len(it.active_controllers()) == 1


def test_followers_that_registered_again_are_admitted_without_a_new_record() -> None:
    """A follower that has everything names no position. A new incarnation must, or nobody hears of it."""
    with scene() as it:
        followers = it.followers()
        for host in followers:
            it.cluster.cut_ensemble(host)
        it.cluster.run_until(lambda: len(it.cluster.ensemble.members()) == 1, 20, "both sessions expire")
        it.cluster.run_until(lambda: it.in_sync() == 1, 10, "both are fenced")
        it.cluster.heal_ensemble()
        it.cluster.run_until(it.is_whole, 20, "both are in sync again")


def test_a_broker_that_nobody_saw_being_restarted_is_still_whole() -> None:
    """It held everything, and was restarted twice while no controller was active. It was once taken for one
    that may have lost something, so that the last member left was elected: the one with the empty disk."""
    with scene() as it:
        replaced = it.cluster.hosts[it.row().leader - 1]
        steady, behind = it.followers()
        behind.wanted = False
        behind.kill()
        it.cluster.run_until(lambda: it.in_sync() == 2, 20, "it is fenced")
        it.write(10)
        committed = it.cluster.ensemble.end
        steady.kill()
        replaced.lose_power()
        replaced.replace_disk()
        for _ in range(2):
            steady.start()
            it.cluster.run_until(lambda: _has_registered(steady), 10, "it registers")
            steady.kill()
        assert it.cluster.ensemble.end == committed, "a controller was active"
        for host in it.cluster.hosts:
            host.start()
        it.cluster.run_until(it.is_whole, 40, "everybody is back")
        assert it.acknowledged() >= 20


def test_a_broker_with_a_full_disk_does_not_register_as_one_that_has_lost_it() -> None:
    """Its session ended while it was stopping. It registered without directories, as if its disk were gone:
    it alone could lead, so the leader before it was elected, whose records had gone with its power."""
    with scene() as it:
        cluster = it.cluster
        full = cluster.hosts[it.row().leader - 1]
        for other in it.followers():
            other.wanted = False
            other.kill()
        broker = full.broker
        assert broker is not None
        cluster.cut_ensemble(full)
        cluster.run_until(lambda: not cluster.ensemble.members(), 20, "its session expires")
        broker.storage.logs.directories[0].failure = StorageError("full")  # nobody has told it to end yet
        cluster.heal_ensemble()
        cluster.run_for(0.5)  # it has a session again, and would have registered
        told = [decode(each.broker_id, each.description) for each in cluster.ensemble.members().values()]
        assert [each.broker_id for each in told if not each.directories] == []


def _has_registered(host: SimulatedHost) -> bool:
    return host.broker is not None and host.broker.node.broker_epoch >= 0
