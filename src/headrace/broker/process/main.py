"""A broker as a process: limits, signals, start, serve, stop."""

from __future__ import annotations

import asyncio
import resource
import signal
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, NamedTuple

from headrace.broker.assembly import assemble
from headrace.broker.broker import Broker
from headrace.broker.process import metrics_server, service_manager
from headrace.broker.process.collector import Collector
from headrace.broker.process.figures import Figures
from headrace.broker.process.gauges import connect_gauges
from headrace.broker.process.health import BrokerHealth
from headrace.broker.process.loop_lag import LoopLag
from headrace.broker.process.metrics_guard import metrics_guard
from headrace.broker.process.metrics_server import MetricsServer
from headrace.broker.process.open_directories import warn_of_open_directories
from headrace.broker.process.system import SystemClock, boot_id, memory_bytes, system_random
from headrace.broker.runtime.environment import Environment
from headrace.broker.runtime.logging import configure, get_logger
from headrace.config.broker import BrokerConfig
from headrace.core.build import this_build
from headrace.core.ports_coordination import Coordination
from headrace.core.ports_objects import ObjectStore
from headrace.core.tasks import spawn
from headrace.log.descriptors import RESERVE, SPARE
from headrace.log.os_disk import OsDisk
from headrace.network.direct_dialer import DirectDialer
from headrace.network.event_loop import BrokerEventLoop


class ReadyInfo(NamedTuple):
    bootstrap: str
    metrics: str | None
    """URL, where metrics are served."""


def real_environment(config: BrokerConfig) -> Environment:
    return Environment(
        clock=SystemClock(),
        disk=OsDisk(),
        random=system_random(),
        dialer=DirectDialer(receive_buffer_bytes=_receive_buffer(config)),
        make_coordination=coordination_of,
        make_object_store=object_store_of,
        boot_id=boot_id(),
        processes=True,
        memory_bytes=memory_bytes(),
        descriptors=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )


def _receive_buffer(config: BrokerConfig) -> int:
    """Only where it is asked for: a fixed size keeps the kernel from adapting it, and costs followers CPU."""
    given = "replica.socket.receive.buffer.bytes" in config.given
    return config.replica_socket_receive_buffer_bytes if given else -1


def coordination_of(config: BrokerConfig) -> Coordination | None:
    if config.zookeeper is None:
        return None
    # Only here: a broker that is alone needs no ZooKeeper, and does not load its client.
    from headrace.coordination.zookeeper import ZooKeeperCoordination

    return ZooKeeperCoordination(
        config.zookeeper,
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        connection_timeout_ms=config.zookeeper_connection_timeout_ms,
        security=config.zookeeper_security,
    )


def object_store_of(config: BrokerConfig) -> ObjectStore | None:
    if not config.remote_log_storage_system_enable:
        return None
    # Only here: a broker without tiered storage does not load the client of object stores.
    from headrace.objects.opening import open_bucket

    assert config.headrace_tier_url is not None, "the configuration was checked"
    return open_bucket(
        config.headrace_tier_url, endpoint=config.headrace_tier_endpoint, region=config.headrace_tier_region
    )


class RunningBroker:
    """A broker with everything around it, on the running event loop."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._broker: Broker | None = None
        self._metrics: MetricsServer | None = None
        self._figures: Figures | None = None
        self._lag: LoopLag | None = None

    @property
    def broker(self) -> Broker:
        """From the moment on at which it has opened its logs."""
        assert self._broker is not None, "it has not started"
        return self._broker

    async def start(self) -> ReadyInfo:
        broker = self._broker = await assemble(self._config, real_environment(self._config))
        lag = self._lag = LoopLag(broker.runtime.loop, broker.runtime.metrics.loop_lag)
        lag.report_to(broker.runtime.health)
        await broker.start()
        lag.start()
        try:
            return await self._serve_metrics()
        except (Exception, asyncio.CancelledError):
            lag.stop()
            await broker.stop()  # it is a member by now, and may lead
            raise

    async def _serve_metrics(self) -> ReadyInfo:
        broker = self.broker
        connect_gauges(broker)
        self._figures = Figures(broker.runtime, broker.storage.logs)
        url = None
        listener = self._config.metrics
        if listener is not None:
            await asyncio.to_thread(metrics_server.load)
            guard = await asyncio.to_thread(metrics_guard, listener, broker.metadata, broker.context.security)
            health = BrokerHealth(
                broker.runtime,
                broker.storage.logs,
                broker.partitions,
                broker.metadata,
                broker.context.peers.reachability,
            )
            contexts: Any = broker.network.tls
            self._metrics = MetricsServer(
                broker.runtime.metrics,
                broker.runtime.clock,
                health,
                guard=guard,
                tls=None if listener.security is None else lambda: contexts[listener.name].context,
            )
            _, port = await self._metrics.start(listener.host, listener.port)
            url = f"{replace(listener, port=port).address}/metrics"
        first = broker.node.endpoints[0]
        return ReadyInfo(f"{first.host}:{first.port}", url)

    async def stop(self) -> None:
        if self._figures is not None:
            self._figures.stop()
        if self._lag is not None:
            self._lag.stop()
        if self._metrics is not None:
            await self._metrics.stop()
        await self.broker.stop()


def run_broker(config: BrokerConfig, *, on_ready: Callable[[ReadyInfo], None] | None = None) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit code."""
    configure()
    raise_descriptor_limit()
    RESERVE.keep(SPARE)
    with asyncio.Runner(loop_factory=BrokerEventLoop) as runner:
        return runner.run(_run(config, on_ready))


async def _run(config: BrokerConfig, on_ready: Callable[[ReadyInfo], None] | None) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    log = get_logger("headrace.broker")
    warn_of_open_directories(log, config.data_directories)
    running = RunningBroker(config)
    ready = await _unless_stopped(running.start(), stop)
    if ready is None:
        log.info("stopped before it was ready")
        return 0
    collector = Collector(loop, lambda: len(running.broker.partitions))
    collector.start()
    build = this_build()
    log.info(
        "ready",
        bootstrap=ready.bootstrap,
        broker_id=running.broker.runtime.broker_id,
        partitions=len(running.broker.partitions),
        version=build.version,
        build=build.kind,
        python=build.python,
    )
    service_manager.notify(service_manager.READY, f"serves at {ready.bootstrap}")
    if on_ready is not None:
        on_ready(ready)
    if running.broker.runtime.reload_files is not None:
        loop.add_signal_handler(signal.SIGHUP, running.broker.runtime.reload_files)
    running.broker.runtime.failure.add_done_callback(lambda _: stop.set())
    await stop.wait()
    failed = running.broker.runtime.failure.done()
    log.info("stopping")
    service_manager.notify(service_manager.STOPPING, "hands over what it leads, and stops")
    collector.stop()
    await running.stop()
    log.info("stopped")
    return 1 if failed else 0


async def _unless_stopped(start: Coroutine[Any, Any, ReadyInfo], stop: asyncio.Event) -> ReadyInfo | None:
    """A start may wait for ZooKeeper or for a controller, for as long as it takes. A signal ends that too."""
    starting, stopped = (
        spawn("start", start, is_awaited=True),
        spawn("a signal", stop.wait(), is_awaited=True),
    )
    await asyncio.wait((starting, stopped), return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        stopped.cancel()
        return starting.result()
    starting.cancel()
    await asyncio.wait((starting,))
    return None


def raise_descriptor_limit() -> None:
    """Each partition and each connection needs a descriptor: take as many as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
