"""What can happen to a simulated cluster, by name. Most faults end by themselves."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from tests.simulation.cluster import SimulatedCluster
from tests.simulation.coincidences import Coincidences
from tests.simulation.decision_faults import DecisionFaults
from tests.simulation.disk_faults import DiskFaults
from tests.simulation.fault_scene import FaultScene
from tests.simulation.file_damage import FileDamage
from tests.simulation.network_faults import NetworkFaults
from tests.simulation.process_faults import ProcessFaults

UNLIMITED: Final = 1 << 60


class Faults:
    def __init__(
        self, cluster: SimulatedCluster, random: Random, *, synced: bool, min_in_sync: int = 2
    ) -> None:
        """`synced`: nothing is acknowledged that would not survive the loss of power everywhere."""
        self._cluster = cluster
        self._scene = FaultScene(cluster, random, synced=synced, min_in_sync=min_in_sync)
        processes, decisions = ProcessFaults(self._scene), DecisionFaults(self._scene)
        network, disks = NetworkFaults(self._scene), DiskFaults(self._scene)
        self.damage = FileDamage(self._scene)
        self.names: dict[str, Callable[[], str | None]] = {
            "kill": processes.kill,
            "bounce": processes.bounce,
            "stop": processes.stop,
            "kill all": processes.kill_all,
            "power": processes.lose_power,
            "power everywhere": processes.lose_power_everywhere,
            "new disk": processes.replace_disk,
            "pause": processes.pause,
            "hang": processes.hang,
            "cut": network.cut,
            "one way": network.cut_one_way,
            "isolate": network.isolate,
            "reset": network.reset,
            "suspect": decisions.suspect,
            "prefer": decisions.prefer,
            "stall": network.stall,
            "slow path": network.slow_path,
            "weather": network.bad_weather,
            "no ensemble": network.cut_from_ensemble,
            "quorum": network.lose_quorum,
            "doubt": network.doubt,
            "clock": disks.jump_clock,
            "slow disk": disks.slow_disk,
            "failed sync": disks.fail_syncs,
            "full disk": disks.fill_disk,
            "reassign": decisions.reassign,
        }
        self.names |= Coincidences(self._scene, decisions, network, disks).names | self.damage.names

    def over(self) -> None:
        """Nothing more happens, and everything that can be healed is."""
        self._scene.is_over = True
        cluster = self._cluster
        cluster.network.on_sent = None
        cluster.network.calm()
        cluster.heal_ensemble()
        settings = cluster.ensemble.settings
        settings.drop_chance = settings.lost_answer_chance = 0.0
        for host in cluster.hosts:
            host.wanted = True
            host.disk.faults.clear()
            host.disk.free = UNLIMITED
            if host.process is not None:
                host.process.loop.thread_slowness = 1.0
            host.resume()
            host.start()
