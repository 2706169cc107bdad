"""What a case is: a load that is prepared, run several times on each side, and cleaned up."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from bench.broker import Broker, Product
from bench.cluster import Cluster, ClusterProduct
from bench.process_cost import wait_until_quiet
from bench.quantity import Quantity
from bench.topics import Topics

Sample = dict[str, float]


@dataclass(frozen=True)
class Scale:
    """How much load: the whole, or a small part of it that only shows that the bench works."""

    factor: float = 1.0
    cold_bytes: int = 4_000_000_000

    def count(self, whole: int, least: int = 1) -> int:
        return max(least, int(whole * self.factor))


class Make(Product, ClusterProduct, Protocol):
    """Runs alone and in clusters."""


@dataclass
class Side:
    """One of the two makes under comparison, and a place for its files."""

    product: Make
    directory: Path
    scale: Scale
    _broker: Broker | None = None
    _topics: Topics | None = None
    _cluster: Cluster | None = None
    _serial: int = 0
    kept: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.product.name

    @property
    def broker(self) -> Broker:
        """The long-running broker of this side; started when first needed."""
        if self._broker is None:
            self._broker = Broker(self.product, self.directory / "main")
            self._broker.start()
        return self._broker

    @property
    def topics(self) -> Topics:
        if self._topics is None:
            self._topics = Topics(self.broker.bootstrap)
        return self._topics

    @property
    def cluster(self) -> Cluster:
        """The long-running cluster of this side; started when first needed."""
        if self._cluster is None:
            cluster = self.product.cluster(self.directory / "cluster")
            cluster.start()
            self._cluster = cluster
        return self._cluster

    def fresh_name(self, purpose: str) -> str:
        self._serial += 1
        return f"{purpose}-{self._serial}"

    def separate_broker(self, purpose: str) -> Broker:
        """Another broker of the same make, on a directory of its own; not started."""
        return Broker(self.product, self.directory / purpose)

    def remove_topic(self, name: str) -> None:
        self.topics.delete(name)
        wait_until_quiet(self.broker.pid)

    def close(self) -> None:
        if self._broker is not None:
            self._broker.stop()
        if self._cluster is not None:
            self._cluster.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


class Case:
    """One measured load. Subclasses fill in the attributes and `run`."""

    name: str
    group: str
    title: str
    quantities: tuple[Quantity, ...]
    # Cases about starting a process have nothing to warm.
    warmed: ClassVar[bool] = True
    # Runs on a cluster of three brokers instead of on one broker.
    clustered: ClassVar[bool] = False

    def prepare(self, side: Side) -> None:
        """Make what all runs share."""

    def run(self, side: Side) -> Sample:
        """One run on one side."""
        raise NotImplementedError

    def finish(self, side: Side) -> None:
        """Remove what `prepare` made."""
