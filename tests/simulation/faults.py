"""What can happen to a simulated cluster. Each fault is one method; most of them end by themselves.

A fault that may destroy the only good copy is not allowed: with min.insync.replicas=2 one host at a time may
lose what it held, unless everything that is acknowledged is synced.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, Final

from headrace.broker.broker import Broker
from headrace.controller.machine import ControllerMachine
from headrace.controller.operations import Reassignment, Result
from headrace.core.errors import HeadraceError
from headrace.replication.replica import Role
from headrace.testing.disk import Fault
from headrace.testing.simulation.network import Weather
from tests.simulation.client import TOPIC
from tests.simulation.cluster import DATA, SimulatedCluster, SimulatedHost

QUICK: Final = (0.02, 0.4)
SLOW: Final = (0.5, 6.0)
_PREFERRED: Final = 0
UNLIMITED: Final = 1 << 60


class Faults:
    def __init__(self, cluster: SimulatedCluster, random: Random, *, synced: bool) -> None:
        """`synced`: nothing is acknowledged that would not survive the loss of power everywhere."""
        self._cluster = cluster
        self._random = random
        self._synced = synced
        self._is_over = False
        self.names: dict[str, Callable[[], str | None]] = {
            "kill": self.kill,
            "bounce": self.bounce,
            "stop": self.stop,
            "kill all": self.kill_all,
            "power": self.lose_power,
            "power everywhere": self.lose_power_everywhere,
            "new disk": self.replace_disk,
            "pause": self.pause,
            "hang": self.hang,
            "cut": self.cut,
            "one way": self.cut_one_way,
            "isolate": self.isolate,
            "reset": self.reset,
            "suspect": self.suspect,
            "prefer": self.prefer,
            "stall": self.stall,
            "slow path": self.slow_path,
            "weather": self.bad_weather,
            "no ensemble": self.cut_from_ensemble,
            "quorum": self.lose_quorum,
            "doubt": self.doubt,
            "clock": self.jump_clock,
            "slow disk": self.slow_disk,
            "failed sync": self.fail_syncs,
            "full disk": self.fill_disk,
            "reassign": self.reassign,
        }

    def over(self) -> None:
        """Nothing more happens, and everything that can be healed is."""
        self._is_over = True
        cluster = self._cluster
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

    # --- whom it hits ---

    def victim(self) -> SimulatedHost | None:
        """Often a leader or the controller: what happens to others is less interesting."""
        running = [host for host in self._cluster.hosts if host.is_running]
        if not running:
            return None
        chance = self._random.random()
        if chance < 0.5:
            leaders = [host for host in running if self._leads(host)]
            if leaders:
                return self._random.choice(leaders)
        elif chance < 0.7:
            office = self._cluster.ensemble.office
            if office is not None and self._cluster.hosts[office.holder - 1].is_running:
                return self._cluster.hosts[office.holder - 1]
        return self._random.choice(running)

    @staticmethod
    def _leads(host: SimulatedHost) -> bool:
        broker = host.broker
        return broker is not None and any(
            partition.role == Role.LEADER for partition in broker.partitions.of_topic(TOPIC)
        )

    def _others(self, host: SimulatedHost) -> list[SimulatedHost]:
        return [other for other in self._cluster.hosts if other is not host]

    def _later(self, span: tuple[float, float], action: Callable[[], None]) -> float:
        seconds = self._random.uniform(*span)
        self._cluster.network.loop.call_later(seconds, self._unless_over, action)
        return seconds

    def _unless_over(self, action: Callable[[], None]) -> None:
        if not self._is_over:
            action()

    def _may_lose_disk(self, host: SimulatedHost) -> bool:
        return not any(other.is_suspect for other in self._others(host))

    def _may_lose_power(self, host: SimulatedHost) -> bool:
        """What is synced survives it, but nobody trusts a host that it happened to."""
        if self._synced:
            return not any(other.is_emptied for other in self._others(host))
        return self._may_lose_disk(host)

    # --- processes and hosts ---

    def kill(self) -> str | None:
        host = self.victim()
        if host is None:
            return None
        host.kill()
        return f"kill {host.name}, back in {self._later(SLOW, host.start):.2f} s"

    def bounce(self) -> str | None:
        """Back before anybody has noticed: the case that only epochs can tell."""
        host = self.victim()
        if host is None:
            return None
        host.kill()
        return f"bounce {host.name}, back in {self._later(QUICK, host.start):.3f} s"

    def stop(self) -> str | None:
        host = self.victim()
        if host is None or host.process is None or not host.process.is_ready:
            return None
        host.stop()
        return f"stop {host.name}"

    def kill_all(self) -> str | None:
        for host in self._cluster.hosts:
            host.kill()
            self._later(SLOW, host.start)
        return "kill all"

    def lose_power(self) -> str | None:
        host = self.victim()
        if host is None or not self._may_lose_power(host):
            return None
        host.lose_power()
        span = QUICK if self._random.random() < 0.4 else SLOW
        return f"power of {host.name}, back in {self._later(span, host.start):.2f} s"

    def lose_power_everywhere(self) -> str | None:
        if not self._synced or any(host.is_emptied for host in self._cluster.hosts):
            return None
        for host in self._cluster.hosts:
            host.lose_power()
            self._later(SLOW, host.start)
        return "power everywhere"

    def replace_disk(self) -> str | None:
        host = self.victim()
        if host is None or not self._may_lose_disk(host):
            return None
        host.lose_power()
        host.replace_disk()
        return f"new disk for {host.name}, back in {self._later(SLOW, host.start):.2f} s"

    def pause(self) -> str | None:
        host = self.victim()
        if host is None:
            return None
        host.pause()
        return f"pause {host.name} for {self._later(SLOW, host.resume):.2f} s"

    def hang(self) -> str | None:
        host = self.victim()
        if host is None:
            return None
        host.pause(with_session=True)
        return f"hang {host.name} for {self._later(SLOW, host.resume):.2f} s"

    # --- the controller's decisions ---

    def _controller(self) -> Broker | None:
        for host in self._cluster.hosts:
            broker = host.broker
            if broker is not None and hasattr(broker, "node") and broker.controller.in_office:
                return broker
        return None

    def suspect(self) -> str | None:
        """Whoever is in office takes a living broker for dead: that may cost an election, and no record."""
        host, controller = self.victim(), self._controller()
        if host is None or controller is None:
            return None
        victims = [host.broker_id]
        self._decide(controller, lambda machine: machine.fence_brokers(victims))
        return f"suspect {host.name}"

    def prefer(self) -> str | None:
        """Leaderships go back to where they were first, in the same processes."""
        controller = self._controller()
        if controller is None:
            return None
        self._decide(controller, lambda machine: machine.elect_leaders(_PREFERRED, None))
        return "prefer the first replicas"

    def reassign(self) -> str | None:
        """A partition is to be elsewhere, or what was begun is taken back."""
        controller = self._controller()
        topic = None if controller is None else controller.image.topic(TOPIC)
        if controller is None or topic is None:
            return None
        index = self._random.randrange(len(topic))
        everywhere = [host.broker_id for host in self._cluster.hosts]
        replicas = self._random.sample(everywhere, k=3) if self._random.random() < 0.85 else None
        asked = [Reassignment(TOPIC, index, replicas)]
        self._decide(controller, lambda machine: machine.reassign_partitions(asked))
        return f"reassign {TOPIC}-{index} to {replicas}"

    def _decide(self, controller: Broker, decide: Callable[[ControllerMachine], Result[Any]]) -> None:
        async def submit() -> None:
            with suppress(HeadraceError):  # it is not in office any more
                await controller.controller.submit(decide)

        host = self._cluster.hosts[controller.broker_id - 1]
        assert host.process is not None
        host.process.loop.create_task(submit())

    # --- the network ---

    def cut(self) -> str | None:
        host = self.victim()
        if host is None:
            return None
        other = self._random.choice(self._others(host))
        self._cluster.network.cut(host.name, other.name)
        self._cluster.network.cut(other.name, host.name)
        seconds = self._later(SLOW, lambda: self._heal(host, [other]))
        return f"cut {host.name} from {other.name} for {seconds:.2f} s"

    def cut_one_way(self) -> str | None:
        host = self.victim()
        if host is None:
            return None
        other = self._random.choice(self._others(host))
        one, two = (host, other) if self._random.random() < 0.5 else (other, host)
        self._cluster.network.cut(one.name, two.name)
        seconds = self._later(SLOW, lambda: self._heal(host, [other]))
        return f"cut {one.name} to {two.name} for {seconds:.2f} s"

    def isolate(self) -> str | None:
        """From the other brokers. Clients, and often the ensemble, still reach it."""
        host = self.victim()
        if host is None:
            return None
        others = self._others(host)
        for other in others:
            self._cluster.network.cut(host.name, other.name)
            self._cluster.network.cut(other.name, host.name)
        also = self._random.random() < 0.3
        if also:
            self._cluster.cut_ensemble(host)
        seconds = self._later(SLOW, lambda: self._heal(host, others))
        return f"isolate {host.name}{' also from the ensemble' if also else ''} for {seconds:.2f} s"

    def _heal(self, host: SimulatedHost, others: list[SimulatedHost]) -> None:
        for other in others:
            self._cluster.network.heal(host.name, other.name)
            self._cluster.network.heal(other.name, host.name)
        self._heal_ensemble_for(host)

    def reset(self) -> str | None:
        host = self.victim()
        if host is None:
            return None
        other = self._random.choice(self._others(host))
        self._cluster.network.reset_connections(host.name, other.name)
        return f"reset between {host.name} and {other.name}"

    def stall(self) -> str | None:
        """What is under way between two brokers arrives late, over the same connection."""
        host = self.victim()
        if host is None:
            return None
        other = self._random.choice(self._others(host))
        one, two = (host, other) if self._random.random() < 0.5 else (other, host)
        seconds = self._random.uniform(0.05, 3.0)
        self._cluster.network.stall(one.name, two.name, seconds)
        return f"stall from {one.name} to {two.name} for {seconds:.2f} s"

    def slow_path(self) -> str | None:
        host = self.victim()
        if host is None:
            return None
        other = self._random.choice(self._others(host))
        path = (host.name, other.name) if self._random.random() < 0.5 else (other.name, host.name)
        paths = self._cluster.network.slow_paths
        paths[path] = self._random.choice((0.05, 0.5, 3.0))
        self._later(SLOW, partial(self._restore_path, path))
        return f"slow from {path[0]} to {path[1]}"

    def _restore_path(self, path: tuple[str, str]) -> None:
        self._cluster.network.slow_paths.pop(path, None)

    def bad_weather(self) -> str | None:
        network, random = self._cluster.network, self._random
        network.weather = Weather(
            most_delay=random.choice((0.002, 0.02, 0.1)),
            stall_chance=random.choice((0.0, 0.005, 0.05)),
            reset_chance=random.choice((0.0, 0.002, 0.01)),
            late_read_chance=random.choice((0.02, 0.2)),
        )
        self._later(SLOW, lambda: setattr(network, "weather", Weather()))
        return "bad weather"

    # --- the ensemble ---

    def cut_from_ensemble(self) -> str | None:
        host = self.victim()
        if host is None:
            return None
        self._cluster.cut_ensemble(host)
        seconds = self._later(SLOW, lambda: self._heal_ensemble_for(host))
        return f"cut {host.name} from the ensemble for {seconds:.2f} s"

    def _heal_ensemble_for(self, host: SimulatedHost) -> None:
        self._cluster.cut_from_ensemble.pop(host.name, None)
        process = host.process
        if process is not None and process.coordination is not None and not process.loop.is_paused:
            process.coordination.heal()

    def lose_quorum(self) -> str | None:
        ensemble = self._cluster.ensemble
        if not ensemble.is_available:
            return None
        ensemble.lose_quorum()
        return f"quorum lost for {self._later(SLOW, self._regain):.2f} s"

    def _regain(self) -> None:
        if not self._cluster.ensemble.is_available:
            self._cluster.ensemble.regain_quorum()

    def doubt(self) -> str | None:
        """Connections to the ensemble break under requests and answers, for a while."""
        settings = self._cluster.ensemble.settings
        settings.drop_chance = self._random.choice((0.0, 0.1, 0.3))
        settings.lost_answer_chance = self._random.choice((0.1, 0.3))
        self._later(SLOW, self._no_doubt)
        return "doubt"

    def _no_doubt(self) -> None:
        settings = self._cluster.ensemble.settings
        settings.drop_chance = settings.lost_answer_chance = 0.0

    # --- clocks and disks ---

    def jump_clock(self) -> str | None:
        host = self._random.choice(self._cluster.hosts)
        milliseconds = self._random.choice((-3_600_000, -5_000, 5_000, 3_600_000, 86_400_000))
        host.jump_clock(milliseconds)
        return f"clock of {host.name} jumps by {milliseconds} ms"

    def slow_disk(self) -> str | None:
        host = self.victim()
        if host is None or host.process is None:
            return None
        loop = host.process.loop
        loop.thread_slowness = self._random.choice((20.0, 200.0, 1000.0))
        self._later(SLOW, lambda: setattr(loop, "thread_slowness", 1.0))
        return f"slow disk at {host.name}"

    def fail_syncs(self) -> str | None:
        """The disk refuses to sync, and what it was given since the last sync may be gone from the cache.

        Whoever meets that ends, and its supervisor starts it again, on a host that has not been down.
        """
        host = self.victim()
        if host is None or not self._may_lose_disk(host):
            return None
        disk = host.disk
        fault = Fault("sync", DATA, errno.EIO)
        disk.faults.append(fault)
        self._later(SLOW, lambda: disk.faults.remove(fault) if fault in disk.faults else None)
        host.is_suspect = host.is_emptied = True
        return f"{host.name} cannot sync"

    def fill_disk(self) -> str | None:
        host = self.victim()
        if host is None:
            return None
        disk, free = host.disk, host.disk.free
        disk.free = self._random.choice((0, 100, 1000))
        self._later(SLOW, lambda: setattr(disk, "free", free))
        return f"disk of {host.name} is full"
