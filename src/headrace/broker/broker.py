"""One broker: what its parts are and how they hang together. What they do is theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple
from uuid import UUID

from headrace.broker.api import Api
from headrace.broker.apis import BY_KEY
from headrace.broker.dispatcher import Dispatcher
from headrace.broker.fetch.sessions import SessionCache
from headrace.broker.fetch.waiting import WaitingFetch
from headrace.broker.flusher import Flusher
from headrace.broker.hosting import Hosting
from headrace.broker.logging import get_logger
from headrace.broker.maintenance import Maintenance
from headrace.broker.partitions import PartitionTable
from headrace.broker.producer_ids import ProducerIds
from headrace.broker.storage import open_storage
from headrace.config.broker import BrokerConfig
from headrace.controller.brokers import BrokerDescription
from headrace.controller.checkpoint_files import CheckpointFiles
from headrace.controller.declared_schema import DeclaredSchema
from headrace.controller.features import SUPPORTED
from headrace.controller.image import Endpoint as AdvertisedEndpoint
from headrace.controller.image import MetadataImage
from headrace.controller.log_journal import LogJournal
from headrace.controller.shell import Controller
from headrace.controller.topics import TopicDefaults
from headrace.coordination.local import LocalCoordination
from headrace.core.errors import ConfigError, HeadraceError, StorageError
from headrace.core.ids import BrokerId
from headrace.core.ports import Clock, Disk, Random
from headrace.metrics.registry import BrokerMetrics
from headrace.network.connection import Connection
from headrace.network.listener import Endpoint

FLUSH_THREADS: Final = 4
READ_THREADS: Final = 4
SPARE_DESCRIPTORS: Final = 128
"""For checkpoints, snapshots and whatever else is opened for a moment."""


class Node(NamedTuple):
    """A broker as clients of one listener see it."""

    broker_id: int
    host: str
    port: int
    rack: str | None


class Broker:
    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock,
        disk: Disk,
        random: Random,
        descriptors: int | None = None,
    ) -> None:
        """`descriptors`: how many files and sockets the process may have open; None if there is no limit."""
        self._descriptors = descriptors
        self.static_config = config
        """What the file says."""
        self.config = config
        """What holds now: the file, and what was set at run time."""
        self.clock = clock
        self.disk = disk
        self.random = random
        self.broker_id = BrokerId(config.broker_id)
        self.loop = asyncio.get_running_loop()
        self.log = get_logger("headrace.broker")
        self.apis: Mapping[int, Api] = BY_KEY
        self.supported_features: Mapping[str, tuple[int, int]] = SUPPORTED
        self.metrics = BrokerMetrics()
        self.partitions = PartitionTable()
        self.waiting_fetches: set[WaitingFetch] = set()
        self.fetch_sessions = SessionCache(
            config.max_incremental_fetch_session_cache_slots, lambda: random.randrange(2**31 - 1) + 1
        )
        self._flush_threads = ThreadPoolExecutor(FLUSH_THREADS, "flush")
        self._read_threads = ThreadPoolExecutor(READ_THREADS, "read-ahead")
        self.flusher = Flusher(self.loop, self._flush_threads, self.metrics.log_flushes)
        self.dispatcher = Dispatcher(self)
        self.network = Endpoint(
            self.loop,
            self.dispatcher,
            self._read_threads,
            max_frame_bytes=config.socket_request_max_bytes,
            max_connections=self.connection_limit,
            max_connections_per_ip=config.max_connections_per_ip,
            max_idle_seconds=config.connections_max_idle_ms / 1000,
            queued_bytes=config.queued_max_request_bytes,
            send_buffer_bytes=config.socket_send_buffer_bytes,
            receive_buffer_bytes=config.socket_receive_buffer_bytes,
            backlog=config.socket_listen_backlog_size,
            meter=self.metrics.listener,
            on_protocol_error=self._on_protocol_error,
        )
        self.endpoints: tuple[AdvertisedEndpoint, ...] = ()
        self.failure: asyncio.Future[HeadraceError] = self.loop.create_future()
        """Set when the broker cannot go on: whoever runs it stops it then."""

    # --- what handlers ask -----------------------------------------------------------------------------

    @property
    def connection_limit(self) -> int:
        """max.connections, but never so many that the logs are left without descriptors: they need half."""
        if self._descriptors is None:
            return self.config.max_connections
        return min(self.config.max_connections, max(1, self._descriptors // 2 - SPARE_DESCRIPTORS))

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    @property
    def metadata_offset(self) -> int:
        """The last offset of the metadata that is applied."""
        return self.controller.end_offset - 1

    @property
    def controller_id(self) -> int:
        return self.broker_id if self.controller.in_office else -1

    def is_alive(self, broker_id: int) -> bool:
        registration = self.image.brokers.get(broker_id)
        return registration is not None and not registration.fenced

    def nodes(self, listener: str) -> list[Node]:
        """The brokers that are alive, at the addresses that peers of `listener` can reach."""
        nodes = []
        for registration in self.image.brokers.values():
            if registration.fenced:
                continue
            for endpoint in registration.endpoints:
                if endpoint.listener == listener:
                    nodes.append(
                        Node(registration.broker_id, endpoint.host, endpoint.port, registration.rack)
                    )
        return nodes

    def monotonic_ms(self) -> int:
        return int(self.clock.monotonic() * 1000)

    # --- life --------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Recover the logs, take office, host the partitions, then let the peers in."""
        try:
            await self._start()
        except BaseException:
            self._abort()
            raise

    async def _start(self) -> None:
        self.endpoints = self._bind()
        storage = await open_storage(self)
        self.logs, self.cluster_id = storage.logs, storage.cluster_id
        journal = LogJournal(storage.metadata_log, now_ms=self.clock.wall_ms)
        coordination = LocalCoordination(journal, cluster_id=storage.cluster_id)
        self.controller = Controller(
            coordination,
            self._description(),
            schema=DeclaredSchema(),
            defaults=TopicDefaults(self.config.num_partitions, self.config.default_replication_factor),
            clock=self.clock,
            random=self.random,
            copy=journal,
            checkpoints=CheckpointFiles(self.disk, storage.metadata_log.path),
        )
        self.controller.on_resign(self._on_resign)
        await self.controller.start()
        self.producer_ids = ProducerIds(self.controller)
        self.hosting = Hosting(self)
        await self.hosting.start()
        self.maintenance = Maintenance(self)
        self.maintenance.start()
        self.network.start_accepting()

    def _bind(self) -> tuple[AdvertisedEndpoint, ...]:
        ports = {}
        for listener in self.config.bound_listeners:
            try:
                ports[listener.name] = self.network.bind(listener.host, listener.port, listener.name)
            except OSError as error:
                raise ConfigError(
                    f"cannot listen at {listener.host}:{listener.port}: {error.strerror}: stop what listens"
                    " there, or choose another port (`listeners`, or `headrace up --port`)"
                ) from error
        return tuple(
            AdvertisedEndpoint(listener.name, listener.host, listener.port or ports[listener.name])
            for listener in self.config.told_listeners
        )

    def _description(self) -> BrokerDescription:
        return BrokerDescription(
            broker_id=self.broker_id,
            incarnation_id=UUID(bytes=self.random.randbytes(16), version=4),
            endpoints=self.endpoints,
            rack=self.config.broker_rack,
            directories=tuple(directory.uuid for directory in self.logs.directories if directory.is_online),
            features=self.supported_features,
        )

    async def stop(self) -> None:
        """Finish what was begun, sync, and say on disk that the stop was clean."""
        self.network.stop_listening()
        await self.dispatcher.drain()  # also refuses what would have to wait from now on
        for waiting in list(self.waiting_fetches):
            waiting.finish()
        self.network.close()
        await self.maintenance.stop()
        await self.controller.stop()
        await self.flusher.drain()
        await self.loop.run_in_executor(self._flush_threads, self.hosting.close)
        self._flush_threads.shutdown()
        self._read_threads.shutdown()

    def _abort(self) -> None:
        """The start failed: let go of sockets, locks and threads, and leave the disk as it is."""
        self.network.close()
        logs = getattr(self, "logs", None)
        if logs is not None:
            logs.release()
        self._flush_threads.shutdown(wait=False)
        self._read_threads.shutdown(wait=False)

    def give_up(self, error: HeadraceError) -> None:
        """Nothing useful can be done any more: say so once, and ask to be stopped."""
        if not self.failure.done():
            self.log.error("the broker cannot go on", error=str(error))
            self.failure.set_result(error)

    def _on_resign(self, error: HeadraceError) -> None:
        self.give_up(StorageError(f"the metadata log has failed: {error}"))

    def _on_protocol_error(self, connection: Connection, error: HeadraceError) -> None:
        self.log.warning("connection closed", peer=connection.peer_host, error=str(error))
