"""A real broker inside a test's own process: on a free port, soon ready, gone afterwards.

with Cluster() as cluster:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})

`Cluster(brokers=3)` starts processes instead, and a ZooKeeper beside them, which needs Java.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from headrace.broker.broker import Broker
from headrace.broker.process.local_cluster import LOCAL, local_ports
from headrace.broker.process.main import ReadyInfo, RunningBroker
from headrace.config.broker import BrokerConfig, require_known
from headrace.core.errors import HeadraceError
from headrace.network.event_loop import BrokerEventLoop
from headrace.testing.process_cluster import ProcessCluster

if TYPE_CHECKING:
    # A cluster that is not secure does not load `cryptography`.
    from headrace.broker.process.local_security import LocalSecurity
    from headrace.client.client_files import ClientFiles
    from headrace.testing.topics import TopicRecord, Topics

T = TypeVar("T")
START_SECONDS = 120.0


class Cluster:
    """One broker, on an event loop of its own in a thread, or several, as processes of their own.

    Data is in `directory`, or in a temporary one.
    """

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        directory: str | Path | None = None,
        brokers: int = 1,
        racks: Sequence[str] = (),
        secure: bool = False,
    ) -> None:
        """`properties` are Kafka's broker properties; those that make it a test broker have defaults.

        `secure`: TLS, users with SCRAM and ACLs, as `headrace up --secure` has them; `client_config` is how
        the administrator connects.
        """
        self._secure = secure
        self._security: LocalSecurity | None = None
        self._properties = dict(properties or {})
        self._brokers = brokers
        self._racks = racks
        self._processes: ProcessCluster | None = None
        self._kept = directory is not None
        self._directory = str(directory) if directory is not None else ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._running: RunningBroker | None = None
        self._ready: ReadyInfo | None = None

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for any Kafka client; of several brokers, all of them."""
        return self._require_ready().bootstrap

    @property
    def client_config(self) -> dict[str, str]:
        """For confluent-kafka and all that is made of librdkafka; of the administrator, if it is secure."""
        if self._security is None:
            return {"bootstrap.servers": self.bootstrap}
        return self._security.client_config()

    @property
    def client_files(self) -> ClientFiles:
        """Of a secure cluster: for Java and `headrace --command-config`, for librdkafka and for Spark."""
        if self._security is None:
            raise HeadraceError("this cluster is not secure: make it with Cluster(secure=True)")
        return self._security.files

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        *,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Blocks until every broker knows it. -1 asks for the broker's default."""
        self._topics().create(
            name, partitions=partitions, replication_factor=replication_factor, configs=configs or {}
        )

    def records(self, topic: str) -> list[TopicRecord]:
        """What is in the topic now, committed and by partition and offset: what a test wants to compare."""
        return self._topics().records(topic)

    def _topics(self) -> Topics:
        from headrace.client.security import PLAINTEXT, ClientSecurity
        from headrace.testing.topics import Topics

        if self._security is None:
            return Topics(self.bootstrap, PLAINTEXT)
        return Topics(self.bootstrap, ClientSecurity.read(str(self._security.files.java)))

    @property
    def metrics_url(self) -> str | None:
        return self._require_ready().metrics

    @property
    def directory(self) -> str:
        return self._directory

    @property
    def broker(self) -> Broker:
        """The broker itself. It belongs to its loop: touch it through `call`."""
        if self._processes is not None:
            raise HeadraceError("brokers of a cluster are other processes: use `processes`")
        if self._running is None:
            raise HeadraceError("the cluster is not running: use it inside `with Cluster() as cluster:`")
        return self._running.broker

    @property
    def processes(self) -> ProcessCluster:
        """The processes of a cluster of several brokers: their ids, their output, and how to kill them."""
        if self._processes is None:
            raise HeadraceError("this cluster is one broker inside this process, or does not run")
        return self._processes

    def start(self) -> Self:
        """ConfigError for a property that is wrong or unknown: in a test a slip of the pen is no warning."""
        require_known(self._properties)
        if not self._directory:
            self._directory = tempfile.mkdtemp(prefix="headrace-test-")
        if self._secure:
            from headrace.broker.process.local_security import LocalSecurity

            self._security = LocalSecurity(Path(self._directory))
        if self._brokers > 1:
            return self._start_processes()
        started = threading.Event()
        failures: list[BaseException] = []
        self._thread = threading.Thread(
            target=self._serve, args=(started, failures), name="headrace-broker", daemon=True
        )
        self._thread.start()
        if not started.wait(START_SECONDS):
            raise HeadraceError(f"the broker did not start within {START_SECONDS:.0f} s")
        if failures:
            self._thread.join()
            self._remove_data()
            raise failures[0]
        return self._ensure_admin()

    def _ensure_admin(self) -> Self:
        if self._security is not None:
            try:
                self._security.ensure_admin(self.bootstrap)
            except BaseException:
                self.stop()
                raise
        return self

    def _start_processes(self) -> Self:
        self._processes = ProcessCluster(
            Path(self._directory), self._brokers, self._properties, self._racks, self._security
        )
        try:
            self._processes.start()
        except BaseException:
            self._processes = None
            self._remove_data()
            raise
        self._ready = ReadyInfo(self._processes.bootstrap, None)
        return self._ensure_admin()

    def stop(self) -> None:
        """A clean stop. The data stays if the directory was given."""
        if self._processes is not None:
            self._processes.stop()
            self._processes = self._ready = None
            self._remove_data()
            return
        if self._loop is None or self._running is None:
            return
        self.run(self._running.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None:
            self._thread.join(START_SECONDS)
        self._running = self._ready = self._loop = None
        self._remove_data()

    def restart(self) -> None:
        """Stop cleanly and start again over the same data; the port may change."""
        kept, self._kept = self._kept, True
        self.stop()
        self._kept = kept
        self.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the broker's loop and wait for it."""
        if self._loop is None:
            raise HeadraceError("the cluster is not running")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_SECONDS)

    def call(self, function: Callable[[], T]) -> T:
        """Call a function on the broker's loop and wait for its result."""

        async def work() -> T:
            return function()

        return self.run(work())

    def _serve(self, started: threading.Event, failures: list[BaseException]) -> None:
        loop = BrokerEventLoop()
        asyncio.set_event_loop(loop)
        try:
            self._ready = loop.run_until_complete(self._start_broker())
            self._loop = loop
        except BaseException as error:
            failures.append(error)
        started.set()
        if not failures:
            loop.run_forever()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    async def _start_broker(self) -> ReadyInfo:
        config = BrokerConfig.parse(
            {
                "broker.id": "1",
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "log.dirs": self._directory,
                **LOCAL,
                **self._protection(),
                **self._properties,
            }
        )
        self._running = RunningBroker(config)
        return await self._running.start()

    def _protection(self) -> dict[str, str]:
        if self._security is None:
            return {}
        port, broker_port = local_ports(0, 2)
        self._security.prepare([1], [broker_port])
        return self._security.properties(1, port, broker_port, [1])

    def _require_ready(self) -> ReadyInfo:
        if self._ready is None:
            raise HeadraceError("the cluster is not running: use it inside `with Cluster() as cluster:`")
        return self._ready

    def _remove_data(self) -> None:
        if not self._kept:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = ""

    def __repr__(self) -> str:
        where = f" at {self._ready.bootstrap}" if self._ready is not None else ", not running"
        count = f"{self._brokers} brokers" if self._brokers > 1 else "a broker"
        return f"<Cluster: {count}{where}{', secure' if self._secure else ''}>"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
