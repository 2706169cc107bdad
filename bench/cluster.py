"""Three brokers of one make as real processes, and what they need beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench import process_cost
from bench.broker import Broker
from bench.topics import Topics

BROKERS = 3


class Coordinator(Protocol):
    """What the brokers of a cluster need to be there first, such as ZooKeeper."""

    @property
    def pids(self) -> list[int]: ...
    def stop(self) -> None: ...


@dataclass
class Cluster:
    """The brokers are launched together: a quorum of them may have to meet before one answers."""

    brokers: list[Broker]
    coordinator: Coordinator | None = None
    _topics: Topics | None = field(default=None, repr=False)

    def start(self) -> None:
        try:
            for broker in self.brokers:
                broker.launch()
            for broker in self.brokers:
                broker.wait_ready(len(self.brokers))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """All at once: the last ones of a quorum would wait for the others in vain."""
        for broker in self.brokers:
            broker.kill()
        if self.coordinator is not None:
            self.coordinator.stop()

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)

    @property
    def broker_pids(self) -> list[int]:
        return [broker.pid for broker in self.brokers]

    @property
    def coordinator_pids(self) -> list[int]:
        return [] if self.coordinator is None else self.coordinator.pids

    @property
    def topics(self) -> Topics:
        if self._topics is None:
            self._topics = Topics(self.bootstrap)
        return self._topics

    def remove_topic(self, name: str) -> None:
        self.topics.delete(name)
        process_cost.wait_until_quiet(*self.broker_pids, *self.coordinator_pids, below_cores=0.2)


class ClusterProduct(Protocol):
    """A make of which a cluster can be built."""

    def cluster(self, directory: Path) -> Cluster:
        """Three brokers that are not started; what they need beside them is."""
        ...
