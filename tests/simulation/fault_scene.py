"""Where faults happen: the cluster, whom they hit, when they end, and what may be lost at the same time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from headrace.replication.replica import Role
from tests.simulation.client import TOPIC
from tests.simulation.cluster import SimulatedCluster, SimulatedHost

QUICK: Final = (0.02, 0.4)
SLOW: Final = (0.5, 6.0)


class FaultScene:
    """A fault that may destroy the only good copy is not allowed: with min.insync.replicas=2 one host at a
    time may lose what it held, unless everything that is acknowledged is synced."""

    def __init__(
        self, cluster: SimulatedCluster, random: Random, *, synced: bool, min_in_sync: int = 2
    ) -> None:
        """`synced`: nothing is acknowledged that would not survive the loss of power everywhere."""
        self.cluster = cluster
        self.random = random
        self.synced = synced
        self.min_in_sync = min_in_sync
        self.is_over = False

    def victim(self) -> SimulatedHost | None:
        """Often a leader or the controller: what happens to others is less interesting."""
        running = [host for host in self.cluster.hosts if host.is_running]
        if not running:
            return None
        chance = self.random.random()
        if chance < 0.5:
            leaders = [host for host in running if self.leads(host)]
            if leaders:
                return self.random.choice(leaders)
        elif chance < 0.7:
            controller = self.cluster.ensemble.active_controller
            if controller is not None and self.cluster.hosts[controller.holder - 1].is_running:
                return self.cluster.hosts[controller.holder - 1]
        return self.random.choice(running)

    @staticmethod
    def leads(host: SimulatedHost) -> bool:
        broker = host.broker
        return broker is not None and any(
            partition.role == Role.LEADER for partition in broker.partitions.of_topic(TOPIC)
        )

    def others(self, host: SimulatedHost) -> list[SimulatedHost]:
        return [other for other in self.cluster.hosts if other is not host]

    def later(self, span: tuple[float, float], action: Callable[[], None]) -> float:
        seconds = self.random.uniform(*span)
        self.cluster.network.loop.call_later(seconds, self._unless_over, action)
        return seconds

    def _unless_over(self, action: Callable[[], None]) -> None:
        if not self.is_over:
            action()

    def may_lose_disk(self, host: SimulatedHost) -> bool:
        return not any(other.is_suspect or other.damaged for other in self.others(host))

    def may_lose_power(self, host: SimulatedHost) -> bool:
        """What is synced survives it, but nobody trusts a host that it happened to."""
        if self.synced:
            return not any(other.is_emptied or other.damaged for other in self.others(host))
        return self.may_lose_disk(host)
