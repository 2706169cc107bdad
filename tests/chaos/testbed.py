"""A cluster with everything that can be broken about it, and one way to mend it all."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.log import files
from tests.broker_process import BrokerProcess, Place
from tests.chaos import network as networks
from tests.chaos import preload
from tests.chaos.apache_kafka_cluster import ApacheKafkaCluster
from tests.chaos.disks import OBEYS_PERMISSIONS, SmallDisk
from tests.chaos.network import OUTSIDE, Network
from tests.chaos.preload import Faults
from tests.chaos.relay import Weather
from tests.cluster_process import ClusterProcess, HeadraceCluster


@dataclass(frozen=True)
class Equipment:
    """What a run wants to break. Each costs something, so each is asked for."""

    hosts: bool = False
    """Each broker in a network namespace."""
    relays: bool = False
    """A relay in front of each broker."""
    faults: bool = False
    """The library between a broker and its disk and clock."""
    disk_megabytes: int = 0
    """The log directory on a small file system of its own."""
    directories: int = 1
    """Log directories of each broker: logs, logs-2, ..."""
    permissions: bool = False
    """Brokers that may not read or write everything."""
    zookeepers: int = 1

    def unavailable(self) -> str | None:
        needs_root = self.hosts or self.disk_megabytes > 0
        return (networks.unavailable() if needs_root else None) or (
            preload.unavailable() if self.faults else None
        )


class Testbed:
    __test__ = False  # the name is not a test's

    def __init__(
        self,
        directory: Path,
        equipment: Equipment,
        *,
        target: str = "headrace",
        brokers: int = 3,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.equipment = equipment
        self.target = target
        self._size = brokers
        self._properties = {"min.insync.replicas": "2", **(properties or {})}
        self._stack = contextlib.ExitStack()
        self.network: Network | None = None
        self.faults: dict[int, Faults] = {}
        self.disks: dict[int, SmallDisk] = {}
        self.cluster: ClusterProcess
        self.unhealthy_zookeepers: set[int] = set()
        self.damaged = 0
        """The broker whose files were damaged, if any were; always the same one."""

    @property
    def numbers(self) -> list[int]:
        return list(range(1, self._size + 1))

    @property
    def zookeeper(self) -> HeadraceCluster:
        assert isinstance(self.cluster, HeadraceCluster)
        return self.cluster

    @property
    def zookeeper_ports(self) -> list[int]:
        return [node.port for node in self.zookeeper.zookeeper.nodes]

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as building:
            if self.equipment.hosts:
                self.network = building.enter_context(Network(self._size))
            for number in self.numbers:
                self._prepare(number, building)
            self.cluster = self._make_cluster()
            for number, place in zip(self.numbers, self.cluster.places, strict=True):
                self.cluster.places[number - 1] = self._equip(number, place)
            building.enter_context(self.cluster)
            self._stack = building.pop_all()
        return self

    def log_dir(self, number: int) -> Path:
        below = self.disks[number].path if number in self.disks else self.directory / str(number)
        return below / "logs"

    def log_dirs(self, number: int) -> list[Path]:
        first = self.log_dir(number)
        more = range(2, self.equipment.directories + 1)
        return [first, *(first.with_name(f"logs-{index}") for index in more)]

    def partition_dir(self, number: int, topic: str, partition: int = 0) -> Path:
        """Where a broker has this partition."""
        found = [path / f"{topic}-{partition}" for path in self.log_dirs(number)]
        return next(path for path in found if path.exists())

    def _prepare(self, number: int, building: contextlib.ExitStack) -> None:
        (self.directory / str(number)).mkdir(parents=True, exist_ok=True)
        if size := self.equipment.disk_megabytes:
            disk = SmallDisk(self.directory / str(number) / "disk", size)
            self.disks[number] = building.enter_context(disk)
        if self.equipment.faults:
            self.faults[number] = Faults(self.log_dir(number), self.directory / f"faults-{number}")

    def _equip(self, number: int, place: Place) -> Place:
        prefix = (*place.prefix, *OBEYS_PERMISSIONS) if self.equipment.permissions else place.prefix
        environment = self.faults[number].environment if number in self.faults else {}
        return Place(place.address, prefix, environment)

    def _make_cluster(self) -> ClusterProcess:
        places = self.network.places() if self.network else None
        relayed = self.equipment.relays
        if self.target == "kafka":
            cluster: ClusterProcess = ApacheKafkaCluster(
                self.directory, self._size, self._properties, places=places, relayed=relayed
            )
        else:
            cluster = HeadraceCluster(
                self.directory,
                self._size,
                self._properties,
                places=places,
                relayed=relayed,
                zookeepers=self.equipment.zookeepers,
                zookeeper_host=self.network.address(OUTSIDE) if self.network else "127.0.0.1",
            )
        cluster.adapt = self._adapt
        return cluster

    def _adapt(self, broker: BrokerProcess) -> None:
        broker.log_dir = self.log_dir(broker.broker_id)
        if self.equipment.directories > 1:
            broker.properties["log.dirs"] = ",".join(map(str, self.log_dirs(broker.broker_id)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    # Mending.

    def heal(self) -> list[int]:
        """Everything is mended and everybody runs. Returns the brokers that had to be started."""
        if self.network:
            self.network.heal()
        for relay in self.cluster.relays.values():
            relay.set(Weather())
        for faults in self.faults.values():
            faults.heal()
        for disk in self.disks.values():
            disk.make_writable()
            disk.free()
        self.heal_zookeeper()
        for number in list(self.cluster.paused):
            self.cluster.resume(number)
        ended = self.restart_ended()
        for number in ended:
            self.cluster.brokers[number].wait_ready()
        return ended

    def restart_ended(self) -> list[int]:
        """Start whoever does not run, and do not wait: what else is broken may keep them from serving."""
        ended = [number for number, broker in self.cluster.brokers.items() if not broker.running]
        for number in ended:
            self.cluster.restart(number, wait=False)
        return ended

    def remove_old_files(self) -> None:
        """As docs/operations.md asks for, of partitions that were fetched anew: these disks are small."""
        for number in self.numbers:
            for root in self.log_dirs(number):
                for path in root.glob(f"*{files.STRAY_DIRECTORY}"):
                    shutil.rmtree(path, ignore_errors=True)

    def heal_zookeeper(self) -> None:
        for index in sorted(self.unhealthy_zookeepers):
            node = self.zookeeper.zookeeper.nodes[index]
            if node.running:
                node.resume()
            else:
                node.launch()
        for index in sorted(self.unhealthy_zookeepers):
            self.zookeeper.zookeeper.nodes[index].wait_ready()
        self.unhealthy_zookeepers.clear()

    def fail_disk(self, number: int) -> str:
        """Its disk is full if it is a small one, and broken otherwise."""
        if number in self.disks:
            self.disks[number].fill()
            return "full"
        self.faults[number].fail(writes=errno.EIO, syncs=errno.EIO)
        return "broken"
