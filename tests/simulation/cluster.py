"""A cluster of real brokers in one process: simulated hosts, network, disks and coordination, one seed.

A host outlives its process. It has a disk, a clock that may be wrong, and a boot that ends with its power.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Final

from headrace.broker.assembly import assemble
from headrace.broker.broker import Broker
from headrace.broker.runtime.environment import Environment
from headrace.config.broker import BrokerConfig
from headrace.controller.safeguards import ALL_ON as CONTROLLER_ALL_ON
from headrace.controller.safeguards import ControllerSafeguards
from headrace.core.errors import HeadraceError
from headrace.log.wholeness import ALL_ON as WHOLENESS_ALL_ON
from headrace.log.wholeness import Wholeness
from headrace.replication.safeguards import ALL_ON, Safeguards
from headrace.testing.disk import SimulatedDisk
from headrace.testing.simulation.clock import BEGINNING_MS, SimulatedClock
from headrace.testing.simulation.coordination import SimulatedCoordination
from headrace.testing.simulation.endpoint import SimulatedEndpoint
from headrace.testing.simulation.ensemble import EnsembleSettings, SimulatedEnsemble
from headrace.testing.simulation.network import SimulatedDialer, SimulatedNetwork
from headrace.testing.simulation.virtual_loop import ProcessLoop
from headrace.testing.simulation.virtual_time import Scheduler, SimulationFailed

PORT: Final = 9092
DATA: Final = "/data"
MORE: Final = "/more"
"""A second disk, where a host has one."""
RESPAWN_SECONDS: Final = (0.2, 2.0)
"""How long a supervisor takes to start a process again that has ended by itself."""

PROPERTIES: Final = {
    "zookeeper.connect": "zookeeper:2181",
    "num.recovery.threads.per.data.dir": "1",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    # Short, so that a run of some seconds sees replicas leave the ISR and come back.
    "replica.lag.time.max.ms": "2000",
    "log.flush.offset.checkpoint.interval.ms": "3000",
    "leader.imbalance.check.interval.seconds": "3",
    "controlled.shutdown.max.retries": "1",
    "controlled.shutdown.retry.backoff.ms": "500",
}


class BrokerProcess:
    """One life of one broker."""

    def __init__(self, host: SimulatedHost, loop: ProcessLoop) -> None:
        self.host = host
        self.loop = loop
        self.broker: Broker | None = None
        self.coordination: SimulatedCoordination | None = None
        self.is_ready = False
        self.is_stopping = False

    async def run(self, config: BrokerConfig, environment: Environment) -> None:
        """As `broker/process/main.py` runs a broker: until it is asked to stop, or cannot go on."""
        try:
            self.broker = await assemble(config, environment)
            await self.broker.start()
            self.is_ready = True
            self.host.on_ready(self)
            await self.broker.runtime.failure
            await self._stop()
        except (HeadraceError, OSError) as error:
            self.host.cluster.tell(f"{self.loop.name} ends: {error}")
        self.host.on_ended(self)

    def stop(self) -> None:
        """SIGTERM. One that is still starting is killed, as by a supervisor without patience."""
        if self.is_ready and not self.is_stopping:
            self.is_stopping = True
            self.loop.create_task(self._stop_and_end())

    async def _stop_and_end(self) -> None:
        try:
            await self._stop()
        except (HeadraceError, OSError) as error:
            self.host.cluster.tell(f"{self.loop.name} stops badly: {error}")
            self.host.was_killed = True
        self.host.on_ended(self)

    async def _stop(self) -> None:
        self.is_stopping = True
        if self.broker is not None:
            await self.broker.stop()


class SimulatedHost:
    def __init__(self, cluster: SimulatedCluster, broker_id: int) -> None:
        self.cluster = cluster
        self.broker_id = broker_id
        self.name = f"broker-{broker_id}"
        self.random = Random(cluster.random.getrandbits(64))
        self.disk = SimulatedDisk(self.random.getrandbits(32))
        self.skew_ms = 0
        self.has_power = True
        self.is_suspect = False
        """It lost power or its disk, and is not yet back among those in sync: what it held may be gone."""
        self.is_emptied = False
        """Its disk was replaced, or could not be synced: what it held is gone though it was synced."""
        self.damaged: dict[tuple[str, int], None] = {}
        """Replicas whose files were damaged, until they are found whole."""
        self.before_start: Callable[[], None] | None = None
        """Happens to it while nothing runs, once."""
        self.boot = 0
        self.lives = 0
        self.was_killed = False
        """The last process did not come to its end: also one that was killed while it stopped."""
        self.process: BrokerProcess | None = None
        self.wanted = True
        """A process that ends by itself is started again by its supervisor while this is true."""
        self._boot_seconds = self.random.uniform(0.0, 1e6)
        self.clock: SimulatedClock | None = None

    @property
    def broker(self) -> Broker | None:
        """The broker that runs here now, if it has got so far."""
        process = self.process
        return process.broker if process is not None and process.loop.is_alive else None

    @property
    def is_running(self) -> bool:
        return self.process is not None

    def is_in_doubt(self, key: tuple[str, int]) -> bool:
        """Whether what it held of a partition may be gone."""
        return self.is_suspect or key in self.damaged

    # --- life and death ---

    def start(self) -> None:
        if self.process is not None:
            return
        cluster = self.cluster
        if not self.has_power:
            self.has_power = True
            self.boot += 1
            self._boot_seconds = self.random.uniform(0.0, 100.0)
            cluster.network.host_up(self.name)
        self.lives += 1
        self.disk.lose_unsynced()
        if self.before_start is not None:
            self.before_start()
            self.before_start = None
        self.was_killed = False
        loop = ProcessLoop(cluster.scheduler, f"{self.name}.{self.lives}", boot_seconds=self._boot_seconds)
        process = self.process = BrokerProcess(self, loop)
        self.clock = SimulatedClock(loop, self.skew_ms)
        self.disk.now_ms = BEGINNING_MS + int(cluster.scheduler.now * 1000)
        environment = Environment(
            clock=self.clock,
            disk=self.disk,
            random=Random(self.random.getrandbits(64)),
            dialer=SimulatedDialer(cluster.network, loop, self.name),
            make_coordination=lambda _config: self._coordination(process),
            make_endpoint=partial(SimulatedEndpoint, cluster.network, self.name),
            boot_id=f"{self.name}-boot-{self.boot}",
            safeguards=cluster.safeguards,
            controller_safeguards=cluster.controller_safeguards,
            wholeness=cluster.wholeness,
        )
        cluster.tell(f"{loop.name} starts")
        loop.create_task(process.run(cluster.config(self.broker_id), environment))

    def _coordination(self, process: BrokerProcess) -> SimulatedCoordination:
        process.coordination = SimulatedCoordination(self.cluster.ensemble, process.loop, process.loop.name)
        if self.name in self.cluster.cut_from_ensemble:
            process.coordination.cut()
        return process.coordination

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()

    def kill(self) -> None:
        """kill -9: what was written stays in the host's cache."""
        if self.process is not None:
            self.cluster.tell(f"{self.process.loop.name} is killed")
            self.was_killed = True
            self.disk.generation += 1
            self._end(self.process)

    def lose_power(self) -> None:
        if self.process is not None:
            self.cluster.tell(f"{self.process.loop.name} loses power")
            self.was_killed = True
            self._end(self.process, silently=True)
        self.has_power = False
        self.is_suspect = True
        self.disk.crash()
        self.cluster.network.host_down(self.name)

    def replace_disk(self) -> None:
        """Only while nothing runs: the same broker id on an empty disk."""
        assert self.process is None
        self.is_suspect = self.is_emptied = True
        self.disk = SimulatedDisk(self.random.getrandbits(32))

    def pause(self, *, with_session: bool = False) -> None:
        """SIGSTOP, or with `with_session` a hung event loop beside a thread that keeps the session alive."""
        if self.process is not None:
            self.process.loop.pause()
            if not with_session and self.process.coordination is not None:
                self.process.coordination.cut()

    def resume(self) -> None:
        if self.process is not None:
            if self.process.coordination is not None and self.name not in self.cluster.cut_from_ensemble:
                self.process.coordination.heal()
            self.process.loop.resume()

    def jump_clock(self, milliseconds: int) -> None:
        self.skew_ms += milliseconds
        if self.clock is not None:
            self.clock.skew_ms = self.skew_ms

    def _end(self, process: BrokerProcess, *, silently: bool = False) -> None:
        process.loop.kill()
        self.cluster.dead.append(process)
        if process.coordination is not None:
            process.coordination.die()
        if not silently:
            self.cluster.network.process_died(self.name)
        self.process = None
        self.cluster.on_process_ended(self)

    # --- what processes tell ---

    def on_ready(self, process: BrokerProcess) -> None:
        self.cluster.tell(f"{process.loop.name} is ready")

    def on_ended(self, process: BrokerProcess) -> None:
        """The process has ended by itself: its supervisor starts another one."""
        if self.process is process:
            self.cluster.tell(f"{process.loop.name} has ended")
            self._end(process)
            if self.wanted:
                seconds = self.random.uniform(*RESPAWN_SECONDS)
                self.cluster.network.loop.call_later(seconds, self._respawn)

    def _respawn(self) -> None:
        if self.wanted and self.process is None:
            self.start()


class SimulatedCluster:
    def __init__(
        self,
        seed: int,
        *,
        brokers: int = 3,
        directories: tuple[str, ...] = (DATA,),
        properties: Mapping[str, str] | None = None,
        safeguards: Safeguards = ALL_ON,
        controller_safeguards: ControllerSafeguards = CONTROLLER_ALL_ON,
        wholeness: Wholeness = WHOLENESS_ALL_ON,
    ) -> None:
        self.scheduler = Scheduler(seed)
        self.random = Random(seed ^ 0x5EED)
        self.network = SimulatedNetwork(self.scheduler)
        self.ensemble = SimulatedEnsemble(
            ProcessLoop(self.scheduler, "ensemble"),
            self.scheduler.random,
            EnsembleSettings(session_timeout=3.0, most_delay=0.004, most_watch_delay=0.05),
        )
        self.ensemble.on_event = self.tell
        self.trace: list[str] | None = None
        self.on_event: Callable[[str], None] | None = None
        self.cut_from_ensemble: dict[str, None] = {}
        self.dead: list[BrokerProcess] = []
        """Kept, so that nothing of them is unwound while the run goes on."""
        self.safeguards = safeguards
        self.controller_safeguards = controller_safeguards
        self.wholeness = wholeness
        self.directories = directories
        self._properties = PROPERTIES | {"log.dirs": ",".join(directories)} | dict(properties or {})
        self._configs: dict[int, BrokerConfig] = {}
        self.on_process_ended: Callable[[SimulatedHost], None] = lambda _host: None
        self.hosts = [SimulatedHost(self, broker_id) for broker_id in range(1, brokers + 1)]

    def config(self, broker_id: int) -> BrokerConfig:
        found = self._configs.get(broker_id)
        if found is None:
            found = self._configs[broker_id] = BrokerConfig.parse(
                self._properties
                | {"broker.id": str(broker_id), "listeners": f"PLAINTEXT://broker-{broker_id}:{PORT}"}
            )
        return found

    def tell(self, text: str) -> None:
        line = f"{self.scheduler.now:9.4f}  {text}"
        if self.trace is not None:
            self.trace.append(line)
        if self.on_event is not None:
            self.on_event(line)

    def brokers(self) -> list[Broker]:
        """Those that run now, also if they are paused."""
        return [host.broker for host in self.hosts if host.broker is not None]

    def cut_ensemble(self, host: SimulatedHost) -> None:
        self.cut_from_ensemble[host.name] = None
        if host.process is not None and host.process.coordination is not None:
            host.process.coordination.cut()

    def heal_ensemble(self) -> None:
        self.cut_from_ensemble.clear()
        if not self.ensemble.is_available:
            self.ensemble.regain_quorum()
        for host in self.hosts:
            if host.process is not None and host.process.coordination is not None:
                host.process.coordination.heal()

    def start(self) -> None:
        for host in self.hosts:
            host.start()

    def run_for(self, seconds: float) -> None:
        until = self.scheduler.now + seconds
        self.network.loop.call_later(seconds, lambda: None)
        self.scheduler.run_until(lambda: self.scheduler.now >= until)

    def run_until(self, condition: Callable[[], bool], most_seconds: float, what: str) -> None:
        """Raises SimulationFailed if it does not come true in time."""
        until = self.scheduler.now + most_seconds
        self.network.loop.call_later(most_seconds, lambda: None)
        self.scheduler.run_until(lambda: condition() or self.scheduler.now >= until)
        if not condition():
            raise SimulationFailed(f"not within {most_seconds:g} s: {what}")
