"""Cuts, resets, stalls and slow paths between brokers; the ensemble out of reach, or in doubt."""

from __future__ import annotations

from functools import partial

from headrace.testing.simulation.network import Weather
from tests.simulation.cluster import SimulatedHost
from tests.simulation.fault_scene import SLOW, FaultScene


class NetworkFaults:
    def __init__(self, scene: FaultScene) -> None:
        self._scene = scene
        self._cluster = scene.cluster
        self._random = scene.random

    def cut(self) -> str | None:
        host = self._scene.victim()
        if host is None:
            return None
        other = self._random.choice(self._scene.others(host))
        self._cluster.network.cut(host.name, other.name)
        self._cluster.network.cut(other.name, host.name)
        seconds = self._scene.later(SLOW, lambda: self._heal(host, [other]))
        return f"cut {host.name} from {other.name} for {seconds:.2f} s"

    def cut_one_way(self) -> str | None:
        host = self._scene.victim()
        if host is None:
            return None
        other = self._random.choice(self._scene.others(host))
        one, two = (host, other) if self._random.random() < 0.5 else (other, host)
        self._cluster.network.cut(one.name, two.name)
        seconds = self._scene.later(SLOW, lambda: self._heal(host, [other]))
        return f"cut {one.name} to {two.name} for {seconds:.2f} s"

    def isolate(self) -> str | None:
        """From the other brokers. Clients, and often the ensemble, still reach it."""
        host = self._scene.victim()
        if host is None:
            return None
        others = self._scene.others(host)
        for other in others:
            self._cluster.network.cut(host.name, other.name)
            self._cluster.network.cut(other.name, host.name)
        also = self._random.random() < 0.3
        if also:
            self._cluster.cut_ensemble(host)
        seconds = self._scene.later(SLOW, lambda: self._heal(host, others))
        return f"isolate {host.name}{' also from the ensemble' if also else ''} for {seconds:.2f} s"

    def _heal(self, host: SimulatedHost, others: list[SimulatedHost]) -> None:
        for other in others:
            self._cluster.network.heal(host.name, other.name)
            self._cluster.network.heal(other.name, host.name)
        self.heal_ensemble_for(host)

    def reset(self) -> str | None:
        host = self._scene.victim()
        if host is None:
            return None
        other = self._random.choice(self._scene.others(host))
        self._cluster.network.reset_connections(host.name, other.name)
        return f"reset between {host.name} and {other.name}"

    def stall(self) -> str | None:
        """What is under way between two brokers arrives late, over the same connection."""
        host = self._scene.victim()
        if host is None:
            return None
        other = self._random.choice(self._scene.others(host))
        one, two = (host, other) if self._random.random() < 0.5 else (other, host)
        seconds = self._random.uniform(0.05, 3.0)
        self._cluster.network.stall(one.name, two.name, seconds)
        return f"stall from {one.name} to {two.name} for {seconds:.2f} s"

    def slow_path(self) -> str | None:
        host = self._scene.victim()
        if host is None:
            return None
        other = self._random.choice(self._scene.others(host))
        path = (host.name, other.name) if self._random.random() < 0.5 else (other.name, host.name)
        paths = self._cluster.network.slow_paths
        paths[path] = self._random.choice((0.05, 0.5, 3.0))
        self._scene.later(SLOW, partial(self._restore_path, path))
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
        self._scene.later(SLOW, lambda: setattr(network, "weather", Weather()))
        return "bad weather"

    # --- the ensemble ---

    def cut_from_ensemble(self) -> str | None:
        host = self._scene.victim()
        if host is None:
            return None
        self._cluster.cut_ensemble(host)
        seconds = self._scene.later(SLOW, lambda: self.heal_ensemble_for(host))
        return f"cut {host.name} from the ensemble for {seconds:.2f} s"

    def heal_ensemble_for(self, host: SimulatedHost) -> None:
        self._cluster.cut_from_ensemble.pop(host.name, None)
        process = host.process
        if process is not None and process.coordination is not None and not process.loop.is_paused:
            process.coordination.heal()

    def lose_quorum(self) -> str | None:
        ensemble = self._cluster.ensemble
        if not ensemble.is_available:
            return None
        ensemble.lose_quorum()
        return f"quorum lost for {self._scene.later(SLOW, self._regain):.2f} s"

    def _regain(self) -> None:
        if not self._cluster.ensemble.is_available:
            self._cluster.ensemble.regain_quorum()

    def doubt(self) -> str | None:
        """Connections to the ensemble break under requests and answers, for a while."""
        settings = self._cluster.ensemble.settings
        settings.drop_chance = self._random.choice((0.0, 0.1, 0.3))
        settings.lost_answer_chance = self._random.choice((0.1, 0.3))
        self._scene.later(SLOW, self._no_doubt)
        return "doubt"

    def _no_doubt(self) -> None:
        settings = self._cluster.ensemble.settings
        settings.drop_chance = settings.lost_answer_chance = 0.0
