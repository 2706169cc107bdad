"""Processes end, stand still and come back; hosts lose their power, and their disks."""

from __future__ import annotations

from tests.simulation.fault_scene import QUICK, SLOW, FaultScene


class ProcessFaults:
    def __init__(self, scene: FaultScene) -> None:
        self._scene = scene
        self._cluster = scene.cluster
        self._random = scene.random

    def kill(self) -> str | None:
        host = self._scene.victim()
        if host is None:
            return None
        host.kill()
        return f"kill {host.name}, back in {self._scene.later(SLOW, host.start):.2f} s"

    def bounce(self) -> str | None:
        """Back before anybody has noticed: the case that only epochs can tell."""
        host = self._scene.victim()
        if host is None:
            return None
        host.kill()
        return f"bounce {host.name}, back in {self._scene.later(QUICK, host.start):.3f} s"

    def stop(self) -> str | None:
        host = self._scene.victim()
        if host is None or host.process is None or not host.process.is_ready:
            return None
        host.stop()
        return f"stop {host.name}"

    def kill_all(self) -> str | None:
        for host in self._cluster.hosts:
            host.kill()
            self._scene.later(SLOW, host.start)
        return "kill all"

    def lose_power(self) -> str | None:
        host = self._scene.victim()
        if host is None or not self._scene.may_lose_power(host):
            return None
        host.lose_power()
        span = QUICK if self._random.random() < 0.4 else SLOW
        return f"power of {host.name}, back in {self._scene.later(span, host.start):.2f} s"

    def lose_power_everywhere(self) -> str | None:
        if not self._scene.synced or any(host.is_emptied for host in self._cluster.hosts):
            return None
        for host in self._cluster.hosts:
            host.lose_power()
            self._scene.later(SLOW, host.start)
        return "power everywhere"

    def replace_disk(self) -> str | None:
        host = self._scene.victim()
        if host is None or not self._scene.may_lose_disk(host):
            return None
        host.lose_power()
        host.replace_disk()
        return f"new disk for {host.name}, back in {self._scene.later(SLOW, host.start):.2f} s"

    def pause(self) -> str | None:
        host = self._scene.victim()
        if host is None:
            return None
        host.pause()
        return f"pause {host.name} for {self._scene.later(SLOW, host.resume):.2f} s"

    def hang(self) -> str | None:
        host = self._scene.victim()
        if host is None:
            return None
        host.pause(with_session=True)
        return f"hang {host.name} for {self._scene.later(SLOW, host.resume):.2f} s"
