"""What a controller may decide at any time, though nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from headrace.broker.broker import Broker
from headrace.controller.machine import ControllerMachine
from headrace.controller.operations import Reassignment, Result
from headrace.core.errors import HeadraceError
from tests.simulation.client import TOPIC
from tests.simulation.cluster import SimulatedHost
from tests.simulation.fault_scene import FaultScene

_PREFERRED: Final = 0


class DecisionFaults:
    def __init__(self, scene: FaultScene) -> None:
        self._scene = scene
        self._cluster = scene.cluster
        self._random = scene.random

    def controller(self) -> Broker | None:
        for host in self._cluster.hosts:
            broker = host.broker
            if broker is not None and broker.controller.is_active:
                return broker
        return None

    def suspect(self) -> str | None:
        """The active controller takes a living broker for dead: that may cost an election, and no record."""
        host = self._scene.victim()
        return f"suspect {host.name}" if host is not None and self.fence(host) else None

    def fence(self, host: SimulatedHost) -> bool:
        """It is unfenced as soon as it is heard of again, and may then join its ISRs."""
        controller = self.controller()
        if controller is not None:
            victims = [host.broker_id]
            self._decide(controller, lambda machine: machine.fence_brokers(victims))
        return controller is not None

    def prefer(self) -> str | None:
        """Leaderships go back to where they were first, in the same processes."""
        controller = self.controller()
        if controller is None:
            return None
        self._decide(controller, lambda machine: machine.elect_leaders(_PREFERRED, None))
        return "prefer the first replicas"

    def reassign(self) -> str | None:
        """A partition is to be elsewhere, or what was begun is taken back."""
        controller = self.controller()
        topic = None if controller is None else controller.metadata.image.topic(TOPIC)
        if controller is None or topic is None:
            return None
        index = self._random.randrange(len(topic))
        everywhere = [host.broker_id for host in self._cluster.hosts]
        count = len(topic.replicas(index)) if len(everywhere) < 4 else 3
        replicas = self._random.sample(everywhere, k=count) if self._random.random() < 0.85 else None
        asked = [Reassignment(TOPIC, index, replicas)]
        self._decide(controller, lambda machine: machine.reassign_partitions(asked))
        return f"reassign {TOPIC}-{index} to {replicas}"

    def _decide(self, controller: Broker, decide: Callable[[ControllerMachine], Result[Any]]) -> None:
        async def submit() -> None:
            with suppress(HeadraceError):  # it is not the active controller any more
                await controller.controller.submit(decide)

        host = self._cluster.hosts[controller.runtime.broker_id - 1]
        assert host.process is not None
        host.process.loop.create_task(submit())
