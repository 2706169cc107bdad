"""What seeds have found, each reduced to the few steps that it took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headrace.controller.topic_image import PartitionState
from headrace.replication.replica import Role
from tests.checker.history import History
from tests.simulation.client import TOPIC, SimulatedClient
from tests.simulation.cluster import SimulatedCluster, SimulatedHost
from tests.simulation.invariants import Invariants
from tests.simulation.producer import SimulatedProducer


class Scene:
    """Three brokers, one partition on all of them, ten records in it, and every invariant watched."""

    def __init__(self) -> None:
        self.cluster = cluster = SimulatedCluster(1)
        invariants = Invariants(cluster, min_in_sync=2)
        cluster.start()
        admin = SimulatedClient(cluster, "admin")
        creation = admin.loop.create_task(admin.create_topic(1, 3, {"min.insync.replicas": "2"}))
        cluster.run_until(creation.done, 30, "the topic exists")
        producer = SimulatedProducer(cluster, 1, 1, History(), 0.01, invariants.on_acknowledged)
        cluster.run_until(lambda: producer.acknowledged >= 10, 30, "ten records are acknowledged")
        producer.finish()
        cluster.run_until(lambda: producer.is_done and self.in_sync() == 3, 30, "all of them have everything")

    def row(self) -> PartitionState:
        """As whoever has the newest metadata sees it."""
        newest = max(self.cluster.brokers(), key=lambda broker: broker.store.end)
        return newest.image.topics_by_name[TOPIC].state(0)

    def in_sync(self) -> int:
        return len(self.row().isr)

    def followers(self) -> list[SimulatedHost]:
        return [host for host in self.cluster.hosts if host.broker_id != self.row().leader]

    def in_office(self) -> list[SimulatedHost]:
        return [
            host
            for host in self.cluster.hosts
            if host.broker is not None and host.broker.controller.in_office
        ]

    def is_whole(self) -> bool:
        if not all(host.process is not None and host.process.is_ready for host in self.cluster.hosts):
            return False
        brokers = self.cluster.brokers()
        ends = {broker.store.end for broker in brokers}
        return self.in_sync() == 3 and ends == {self.cluster.ensemble.end}


@contextmanager
def scene() -> Iterator[Scene]:
    made = Scene()
    try:
        yield made
    finally:
        made.cluster.scheduler.bury()


def test_a_controller_that_was_deposed_in_silence_hears_of_it() -> None:
    """Its session lives and it has nothing to commit: it once stayed in office for ever, beside another."""
    with scene() as it:
        (old,) = it.in_office()
        others = [host for host in it.cluster.hosts if host is not old]
        for other in others:
            it.cluster.network.cut(old.name, other.name)
        it.cluster.run_until(lambda: it.cluster.ensemble.epoch > 0, 20, "another takes office")
        it.cluster.network.heal()
        it.cluster.run_until(lambda: it.in_office() != [] and old not in it.in_office(), 5, "it resigns")
        it.cluster.run_until(it.is_whole, 20, "everybody follows the new one")
        assert len(it.in_office()) == 1


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
    """Restarted again and again while nobody was in office, it once lost its place to an empty disk."""
    with scene() as it:
        leader = it.cluster.hosts[it.row().leader - 1]
        steady, replaced = it.followers()
        leader.wanted = False
        leader.kill()
        replaced.lose_power()
        replaced.replace_disk()
        steady.kill()
        it.cluster.ensemble.lose_quorum()
        for _ in range(3):
            it.cluster.ensemble.regain_quorum()
            registered = len(it.cluster.ensemble.ever)
            steady.start()
            it.cluster.run_until(
                lambda: steady.broker_id in it.cluster.ensemble.members(), 10, "it registers"
            )
            steady.kill()
            it.cluster.run_for(0.01)
            assert len(it.cluster.ensemble.ever) - registered < 3
        for host in it.cluster.hosts:
            host.start()
        it.cluster.run_until(it.is_whole, 40, "everybody is back")
        broker = it.cluster.hosts[it.row().leader - 1].broker
        assert broker is not None
        partition = broker.partitions.get(TOPIC, 0)
        assert partition.role == Role.LEADER
        assert partition.log.end_offset >= 10
