"""A cluster whose brokers have racks, two log directories each, and metrics."""

from __future__ import annotations

import subprocess
import urllib.request
from pathlib import Path

from tests.broker_process import HEADRACE, BrokerProcess, Place
from tests.chaos.disks import OBEYS_PERMISSIONS
from tests.cluster_process import HeadraceCluster
from tests.ports import own_port

RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}


class EquippedCluster(HeadraceCluster):
    def __init__(self, directory: Path, brokers: int = 3, properties: dict[str, str] | None = None) -> None:
        place = Place(prefix=OBEYS_PERMISSIONS)
        super().__init__(directory, brokers, properties, places=[place] * brokers)
        self._metrics: dict[int, int] = {}

    def make(self, broker_id: int, place: Place) -> BrokerProcess:
        broker = super().make(broker_id, place)
        self._metrics[broker_id] = own_port()
        broker.properties["broker.rack"] = RACKS[broker_id]
        broker.properties["log.dirs"] = ",".join(map(str, self.log_dirs(broker_id)))
        broker.properties["headrace.metrics.listener"] = f"127.0.0.1:{self._metrics[broker_id]}"
        return broker

    def log_dirs(self, broker_id: int) -> list[Path]:
        """The first holds the metadata."""
        directory = self.directory / str(broker_id)
        return [directory / "first", directory / "second"]

    def add(self, broker_id: int) -> None:
        """One more broker, started."""
        self._add(broker_id, Place(prefix=OBEYS_PERMISSIONS))
        self.brokers[broker_id].start()
        self.wait_whole()

    def forget(self, broker_id: int) -> None:
        """It has stopped for good."""
        assert not self.brokers.pop(broker_id).running

    def metric(self, broker_id: int, name: str, **labels: str) -> float:
        """The sum over all samples of this name that have these labels."""
        address = f"http://127.0.0.1:{self._metrics[broker_id]}/metrics"
        with urllib.request.urlopen(address, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in lines
            if line.split("{")[0].split(" ")[0] == name and all(one in line for one in wanted)
        )

    def headrace(self, *arguments: str, seconds: float = 90) -> str:
        """What a command prints; it must succeed."""
        running = ",".join(broker.bootstrap for broker in self.brokers.values() if broker.running)
        command = [str(HEADRACE), *arguments, "--bootstrap", running]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout


class WithoutRacks(EquippedCluster):
    """With two of four brokers in one rack, the others would hold a replica of all that has three."""

    def make(self, broker_id: int, place: Place) -> BrokerProcess:
        broker = super().make(broker_id, place)
        del broker.properties["broker.rack"]
        return broker
