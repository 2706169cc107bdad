"""A cluster of real broker processes with a real ZooKeeper, for tests that need more than one broker.

Everything is a child of this process and ends with it. Use it through `Cluster(brokers=3)`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import threading
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.broker.process.local_cluster import local_ports, local_properties
from headrace.broker.process.supervisor import BrokerSpec, Supervisor, write_properties
from headrace.core.errors import HeadraceError
from headrace.testing.zookeeper import ServerTls, ZooKeeper

if TYPE_CHECKING:
    from headrace.broker.process.local_security import LocalSecurity

T = TypeVar("T")
START_SECONDS = 120.0
STOP_SECONDS = 20.0


class ProcessCluster:
    """Blocking on the outside; on the inside a supervisor on an event loop of its own in a thread."""

    def __init__(
        self,
        directory: Path,
        brokers: int,
        properties: Mapping[str, str],
        racks: Sequence[str] = (),
        security: LocalSecurity | None = None,
    ) -> None:
        self._directory = directory
        self._brokers = brokers
        self._properties = properties
        self._racks = racks
        self._security = security
        ports = local_ports(0, brokers if security is None else 2 * brokers)
        self._ports, self._broker_ports = ports[:brokers], ports[brokers:]
        self._supervisor: Supervisor | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.zookeeper: ZooKeeper | None = None
        self.events: list[str] = []
        """What the supervisor said, in lines for people."""

    @property
    def bootstrap(self) -> str:
        return self._require().bootstrap

    @property
    def pids(self) -> dict[int, int]:
        return self._require().pids

    def output(self, broker_id: int) -> Path:
        """The log of a broker."""
        return self._directory / f"broker-{broker_id}.out"

    def start(self) -> None:
        tls = None if self._security is None else ServerTls(*self._security.prepare_zookeeper())
        self.zookeeper = ZooKeeper(self._directory / "zookeeper", tls=tls).start()
        try:
            self._start_loop()
            self.start_brokers()
        except BaseException:
            self.stop()
            raise

    def start_brokers(self) -> None:
        """All of them, over what they left behind."""
        assert self.zookeeper is not None
        given = local_properties(
            self._directory, self._ports, self.zookeeper.connect, self._racks, self._properties
        )
        specs = []
        for properties, protected in zip(given, self._protection(), strict=True):
            broker_id = int(properties["broker.id"])
            properties = {**properties, **protected, **self._properties}
            file = write_properties(self._directory / f"broker-{broker_id}.properties", properties)
            specs.append(BrokerSpec(broker_id, file, self.output(broker_id)))
        self._run_supervisor(specs)

    def _protection(self) -> list[dict[str, str]]:
        """What each broker's file says beside the rest."""
        ids = range(1, self._brokers + 1)
        if self._security is None:
            return [{} for _ in ids]
        self._security.prepare(ids, self._broker_ports)
        return [
            {
                **self._security.properties(broker_id, port, broker_port, ids),
                **self._security.zookeeper_properties(),
            }
            for broker_id, port, broker_port in zip(ids, self._ports, self._broker_ports, strict=True)
        ]

    def stop_brokers(self) -> None:
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            self._await(supervisor.stop(), STOP_SECONDS * (self._brokers + 1))

    def retire(self, broker_id: int) -> None:
        """Stop one broker in order, for good."""
        self._await(self._require().retire(broker_id), STOP_SECONDS * 2)

    def lose_zookeeper(self) -> None:
        """An empty one takes the place of ZooKeeper, at another address. The brokers must be stopped."""
        assert self.zookeeper is not None
        self.zookeeper.stop()
        shutil.rmtree(self.zookeeper.directory)
        self.zookeeper.start()

    def _await(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def _start_loop(self) -> None:
        # A broker ends when the thread that started it does, so this one lives as long as the cluster.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="headrace-supervisor", daemon=True
        )
        self._thread.start()

    def _run_supervisor(self, specs: Sequence[BrokerSpec]) -> None:
        async def begin() -> Supervisor:
            supervisor = Supervisor(specs, say=self.events.append, stop_seconds=STOP_SECONDS)
            await supervisor.start(START_SECONDS)
            return supervisor

        try:
            self._supervisor = self._await(begin(), START_SECONDS + STOP_SECONDS)
        except HeadraceError as error:
            words = "\n".join(_last_words(spec) for spec in specs)
            raise HeadraceError(f"{error}\n{words}") from None

    def kill(self, broker_id: int) -> None:
        """End a broker as a crash does. The supervisor starts it again after a moment."""
        os.kill(self.pids[broker_id], signal.SIGKILL)

    def stop(self) -> None:
        if self._loop is not None:
            self.stop_brokers()
            self._loop.call_soon_threadsafe(self._loop.stop)
            if self._thread is not None:
                self._thread.join()
            self._loop.close()
            self._loop = self._thread = None
        if self.zookeeper is not None:
            self.zookeeper.stop()
            self.zookeeper = None

    def _require(self) -> Supervisor:
        if self._supervisor is None:
            raise HeadraceError("the cluster is not running: use it inside `with Cluster(...) as cluster:`")
        return self._supervisor


def _last_words(spec: BrokerSpec) -> str:
    text = spec.output.read_text(errors="replace") if spec.output is not None and spec.output.exists() else ""
    return f"broker {spec.broker_id}: {text.strip()[-1000:]}"
