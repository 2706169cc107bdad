"""What every part of a broker stands on: loop and timers, clock, log, settings, metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from headrace.broker.runtime.environment import Environment
from headrace.broker.runtime.health_report import HealthReport
from headrace.broker.runtime.logging import get_logger
from headrace.broker.runtime.peer_log import PeerLog
from headrace.broker.runtime.peer_memory import PeerMemory
from headrace.broker.runtime.turns import Turns
from headrace.broker.runtime.work_thread import WorkThread
from headrace.config.broker import BrokerConfig
from headrace.controller.features import SUPPORTED
from headrace.core.errors import HeadraceError
from headrace.core.ids import BrokerId
from headrace.core.timers import TimerQueue
from headrace.metrics.registry import BrokerMetrics

SPARE_DESCRIPTORS: Final = 128
"""For checkpoints, snapshots and whatever else is opened for a moment."""


class Runtime:
    def __init__(self, config: BrokerConfig, environment: Environment, *, is_standalone: bool) -> None:
        self.environment = environment
        self.clock = environment.clock
        self.disk = environment.disk
        self.random = environment.random
        self.is_standalone = is_standalone
        """Whether it is the whole cluster, without ZooKeeper."""
        self.broker_id = BrokerId(config.broker_id)
        self.static_config = config
        """What the file says."""
        self.config = config
        """What holds now: the file, and what was set at run time."""
        self._config_listeners: list[Callable[[], None]] = []
        self.supported_features: Mapping[str, tuple[int, int]] = SUPPORTED
        self.loop = asyncio.get_running_loop()
        self.timers = TimerQueue(self.loop)
        self.log = get_logger("headrace.broker")
        self.peer_log = PeerLog(self.loop, self.log)
        """For what a peer can cause as often as it likes."""
        self.metrics = BrokerMetrics()
        self.health = HealthReport()
        self.memory = PeerMemory(config, environment.memory_bytes)
        """What is held on behalf of peers."""
        self.turns = Turns(self.loop, self.clock, self.metrics.received_bytes)
        self.work_thread = WorkThread(self.loop)
        self.reload_files: Callable[[], None] | None = None
        """What SIGHUP asks for; None if there is nothing to read again."""
        self.failure: asyncio.Future[HeadraceError] = self.loop.create_future()
        """Done when this broker can do nothing useful any more: whoever runs it then stops it."""

    def monotonic_ms(self) -> int:
        return int(self.clock.monotonic() * 1000)

    async def offload(self, call: Callable[[], None]) -> None:
        """Run a blocking call so that the loop goes on; a simulated loop runs it in place."""
        await self.loop.run_in_executor(None, call)

    def give_up(self, error: HeadraceError) -> None:
        """Nothing useful can be done any more: say so once, and ask to be stopped."""
        if not self.failure.done():
            self.log.error("fatal error: the broker stops", error=str(error))
            self.failure.set_result(error)

    # --- settings ---

    @property
    def connection_limit(self) -> int:
        """max.connections, but never so many that the logs are left without descriptors: they need half."""
        descriptors = self.environment.descriptors
        if descriptors is None:
            return self.config.max_connections
        return min(self.config.max_connections, max(1, descriptors // 2 - SPARE_DESCRIPTORS))

    def on_config_change(self, listener: Callable[[], None]) -> None:
        """`listener` is called whenever `config` is another object."""
        self._config_listeners.append(listener)

    def update_config(self, config: BrokerConfig) -> None:
        self.config = config
        for listener in self._config_listeners:
            listener()
