"""One broker: what its parts are and how they hang together. What they do is theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NamedTuple

from headrace.broker.api import Api
from headrace.broker.apis import BY_KEY
from headrace.broker.cleaning import Cleaning
from headrace.broker.cluster.broker_hosts import BrokerHosts
from headrace.broker.cluster.channel import ControllerChannel
from headrace.broker.cluster.controller_duties import MetadataPosition
from headrace.broker.cluster.dead_directories import DeadDirectories
from headrace.broker.cluster.leaving import leave
from headrace.broker.cluster.node import ClusterNode, Standing
from headrace.broker.cluster.reachability import Reachability
from headrace.broker.cluster.recently_fenced import RecentlyFencedBrokers
from headrace.broker.cluster.snapshots import Snapshots
from headrace.broker.cluster.standalone_node import StandaloneNode
from headrace.broker.cluster.suspicions import Suspicions
from headrace.broker.coordinators.coordinators import Coordinators
from headrace.broker.disk_space import DiskSpace
from headrace.broker.dispatcher import Dispatcher
from headrace.broker.fetch.cold_reads import ColdReads
from headrace.broker.fetch.delayed_fetch import FetchPurgatory
from headrace.broker.fetch.sessions import SessionCache
from headrace.broker.fetch.wide_fetches import WideFetches
from headrace.broker.flusher import Flusher
from headrace.broker.health_report import HealthReport
from headrace.broker.held_memory import held_bytes
from headrace.broker.hosting import Hosting
from headrace.broker.integrity import Integrity
from headrace.broker.logging import get_logger
from headrace.broker.maintenance import Maintenance
from headrace.broker.partitions import PartitionTable
from headrace.broker.peer_log import PeerLog
from headrace.broker.peer_memory import PeerMemory
from headrace.broker.produce_purgatory import ProducePurgatory
from headrace.broker.producer_ids import ProducerIds
from headrace.broker.producer_memory import ProducerMemory
from headrace.broker.refused_batches import RefusedBatches
from headrace.broker.removing import Removing
from headrace.broker.replicas.manager import ReplicaManager
from headrace.broker.requests.metadata_rows import MetadataRows
from headrace.broker.requests.turns import Turns
from headrace.broker.requests.work_thread import WorkThread
from headrace.broker.storage import (
    METADATA_PARTITION,
    METADATA_TOPIC_ID,
    Storage,
    load_metadata,
    open_storage,
)
from headrace.broker.transactions.verification import Verifications
from headrace.broker.truncations import AT_ONCE, Truncations
from headrace.broker.world import World
from headrace.config.broker import BrokerConfig
from headrace.controller.checkpoint_files import CheckpointFiles
from headrace.controller.declared_schema import DeclaredSchema
from headrace.controller.features import SUPPORTED
from headrace.controller.image import Endpoint as AdvertisedEndpoint
from headrace.controller.image import MetadataImage
from headrace.controller.machine import ControllerMachine
from headrace.controller.shell import Controller
from headrace.controller.store import MetadataCopy, MetadataStore
from headrace.controller.topics import TopicDefaults
from headrace.coordination.local import LocalCoordination
from headrace.core.errors import ConfigError, HeadraceError, NotReady, StorageError
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.core.ports_coordination import Coordination
from headrace.core.timers import TimerQueue
from headrace.log.directory import LogDirectory
from headrace.metrics.registry import BrokerMetrics
from headrace.network.connection import Connection
from headrace.replication.partition import Partition

FLUSH_THREADS: Final = 4
READ_THREADS: Final = 4
TRUNCATION_THREADS: Final = AT_ONCE + 1
SPARE_DESCRIPTORS: Final = 128
"""For checkpoints, snapshots and whatever else is opened for a moment."""


class Node(NamedTuple):
    """A broker as clients of one listener see it."""

    broker_id: int
    host: str
    port: int
    rack: str | None


class ToItself:
    """Stands where a connection would, when a broker that is the active controller asks itself."""

    peer_host = "127.0.0.1"

    def __init__(self, listener: str) -> None:
        self.listener = listener

    def close(self) -> None:
        """There is nothing to hang up."""


class Broker:
    def __init__(self, config: BrokerConfig, world: World) -> None:
        self.world = world
        self.static_config = config
        """What the file says."""
        self.config = config
        """What holds now: the file, and what was set at run time."""
        self.clock = world.clock
        self.disk = world.disk
        self.random = world.random
        self.broker_id = BrokerId(config.broker_id)
        self.loop = asyncio.get_running_loop()
        self.log = get_logger("headrace.broker")
        self.peer_log = PeerLog(self.loop, self.log)
        """For what a peer can cause as often as it likes."""
        self.apis: Mapping[int, Api] = BY_KEY
        self.supported_features: Mapping[str, tuple[int, int]] = SUPPORTED
        self.metrics = BrokerMetrics()
        self.memory = PeerMemory(config, world.memory_bytes)
        """What is held on behalf of peers."""
        self.partitions = PartitionTable()
        self.timers = TimerQueue(self.loop)
        self.fetch_purgatory = FetchPurgatory(self.loop)
        self.produce_purgatory = ProducePurgatory(self.loop, self.memory.held.limit_bytes)
        self.refused_batches = RefusedBatches()
        self.fetch_sessions = SessionCache(
            config.max_incremental_fetch_session_cache_slots,
            lambda: world.random.randrange(2**31 - 1) + 1,
            self.memory.fetch_sessions,
        )
        self._flush_threads = ThreadPoolExecutor(FLUSH_THREADS, "flush")
        self._read_threads = ThreadPoolExecutor(READ_THREADS, "read-ahead")
        self.wide_fetches = WideFetches()
        self.turns = Turns(self.loop, self.clock, self.metrics.received_bytes)
        self.work_thread = WorkThread(self.loop)
        self.flusher = Flusher(self.loop, self._flush_threads, self.metrics.log_flushes)
        self._truncation_threads = ThreadPoolExecutor(TRUNCATION_THREADS, "truncate")
        self.truncations = Truncations(self, self._truncation_threads)
        self.dispatcher = Dispatcher(self)
        self.network = world.make_endpoint(
            self.loop,
            self.dispatcher,
            self._read_threads,
            max_frame_bytes=config.socket_request_max_bytes,
            max_connections=self.connection_limit,
            max_connections_per_ip=config.max_connections_per_ip,
            max_idle_seconds=config.connections_max_idle_ms / 1000,
            requests=self.memory.requests,
            answers=self.memory.answers,
            send_buffer_bytes=config.socket_send_buffer_bytes,
            receive_buffer_bytes=config.socket_receive_buffer_bytes,
            backlog=config.socket_listen_backlog_size,
            meter=self.metrics.listener,
            on_protocol_error=self._on_protocol_error,
        )
        self.endpoints: tuple[AdvertisedEndpoint, ...] = ()
        self.to_itself: Any = ToItself(config.bound_listeners[0].name)
        self.channel = ControllerChannel(self)
        self.suspicions = Suspicions(self)
        self.recently_fenced = RecentlyFencedBrokers(self)
        self.broker_hosts = BrokerHosts(self)
        self.metadata_rows = MetadataRows(self)
        self.integrity = Integrity(self)
        self.cold_reads = ColdReads(self.loop, self._read_threads, self.integrity, self.metrics.scrub)
        self.verification = Verifications(self)
        self.is_standalone = True
        self.health = HealthReport()
        self.reachability: Reachability | None = None
        """Of ZooKeeper; a broker that is alone has none to reach."""
        self._shared: Coordination | None = None
        self.open_to_clients = False
        """Until a broker is registered and hosts its partitions, only other brokers are served."""
        self.failure: asyncio.Future[HeadraceError] = self.loop.create_future()
        """Set when fatal error: the broker stops: whoever runs it stops it then."""

    # --- what handlers ask -----------------------------------------------------------------------------

    @property
    def connection_limit(self) -> int:
        """max.connections, but never so many that the logs are left without descriptors: they need half."""
        if self.world.descriptors is None:
            return self.config.max_connections
        return min(self.config.max_connections, max(1, self.world.descriptors // 2 - SPARE_DESCRIPTORS))

    @property
    def image(self) -> MetadataImage:
        return self.store.image

    @property
    def metadata_offset(self) -> int:
        """The last offset of the metadata that is applied."""
        return self.store.end - 1

    @property
    def controller_id(self) -> int:
        """Whom this broker takes to be the active controller; -1 if it knows of nobody."""
        return self.node.controller_id

    @property
    def broker_epoch(self) -> BrokerEpoch:
        """Which incarnation of this broker this process is; -1 before it has registered."""
        return self.node.broker_epoch

    def address_of(self, broker_id: int) -> tuple[str, int] | None:
        """Where another broker listens for brokers, as the metadata says."""
        registration = self.image.brokers.get(broker_id)
        return None if registration is None else self.address_among(registration.endpoints)

    def address_among(self, endpoints: Sequence[AdvertisedEndpoint]) -> tuple[str, int] | None:
        wanted = self.config.inter_broker_listener_name
        for endpoint in endpoints:
            if wanted is None or endpoint.listener == wanted:
                return endpoint.host, endpoint.port
        return None

    def is_alive(self, broker_id: int) -> bool:
        registration = self.image.brokers.get(broker_id)
        return registration is not None and not registration.fenced

    def nodes(self, listener: str, also: Container[int] = ()) -> list[Node]:
        """The living brokers, and those of `also`, at the addresses that peers of `listener` can reach."""
        nodes = []
        for registration in self.image.brokers.values():
            if registration.fenced and registration.broker_id not in also:
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
        """Recover the logs, become controller, host the partitions, then let the peers in."""
        try:
            await self._start()
        except (Exception, asyncio.CancelledError):
            await self._abort()
            raise

    async def _start(self) -> None:
        self.endpoints = self._bind()
        self.integrity.watch(self.network)
        shared = self.world.make_coordination(self.config)
        self.is_standalone = shared is None
        if shared is not None:
            self._shared = shared
            self.reachability = Reachability(shared, self.config.zookeeper)
            self.reachability.report_to(self.health)
            await shared.start()
        storage = await open_storage(self, shared)
        self.logs, self.cluster_id = storage.logs, storage.cluster_id
        self.disk_space = DiskSpace(self)
        await self.disk_space.start()
        self.producer_memory = ProducerMemory(self)
        self.producer_memory.start()
        self.high_watermarks = storage.high_watermarks
        storage, journal, self.store = await load_metadata(self, storage, self._metadata_store)
        self.removing = Removing(self.loop, self.logs.removals)  # until here what is set aside is waited for
        self._serve_metadata(storage)
        coordination = shared or LocalCoordination(journal, cluster_id=storage.cluster_id)
        self.controller = Controller(coordination, self.store, self.clock)
        self.producer_ids = ProducerIds(self)
        self.coordinators = Coordinators(self)
        self.memory.count_held = partial(held_bytes, self)
        self.hosting = Hosting(self)
        self.replicas = ReplicaManager(self)
        self.dead_directories = DeadDirectories(self)
        self.snapshots = Snapshots(self)
        self.maintenance = Maintenance(self)
        self.cleaning = Cleaning(self)
        self.node: Standing = StandaloneNode(self) if shared is None else ClusterNode(self, coordination)
        if shared is not None:
            self.network.start_accepting()  # brokers must reach each other before any of them is ready
            self.replicas.start()
        await self.node.start()
        self.maintenance.start()
        self.cleaning.start()
        self.snapshots.start()
        self.open_to_clients = True
        if shared is None:
            self.network.start_accepting()

    async def offload(self, call: Callable[[], None]) -> None:
        """Run a blocking call so that the loop goes on; a simulated loop runs it in place."""
        await self.loop.run_in_executor(None, call)

    def _metadata_store(self, storage: Storage, journal: MetadataCopy) -> MetadataStore:
        machine = ControllerMachine(
            schema=DeclaredSchema(),
            random=self.random,
            defaults=TopicDefaults(
                self.config.num_partitions,
                self.config.default_replication_factor,
                self.config.min_insync_replicas,
                self.config.unclean_leader_election_enable,
            ),
            safeguards=self.world.controller_safeguards,
        )
        folder = storage.metadata_log.path
        store = MetadataStore(
            machine,
            journal,
            checkpoints=CheckpointFiles(self.disk, folder, offload=self.offload),
        )
        store.on_subscriber_error = lambda error: self.loop.call_exception_handler(
            {"message": "a subscriber of the metadata failed", "exception": error}
        )
        return store

    def _serve_metadata(self, storage: Storage) -> None:
        """Other brokers fetch the metadata log like any partition. All of it is committed."""
        log = storage.metadata_log
        partition = Partition(
            METADATA_PARTITION, METADATA_TOPIC_ID, log, self.metrics.topic(METADATA_PARTITION.topic)
        )
        self.metadata_partition = partition
        self.store.subscribe(lambda _delta: self._on_metadata())
        self.store.subscribe(self.suspicions.on_delta)
        self.recently_fenced.begin()
        self.store.subscribe(self.recently_fenced.on_delta)
        self.store.subscribe(self.metadata_rows.on_delta)
        self._on_metadata()

    def _on_metadata(self) -> None:
        self.metadata_partition.on_extended(1)

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

    async def stop(self) -> None:
        """Finish what was begun, sync, and say on disk that the stop was clean."""
        await leave(self)
        await self.node.hand_over()
        self.network.stop_listening()
        self.coordinators.stop()  # refuses what it holds: a member may wait for others for minutes
        self.verification.stop()
        await self.dispatcher.drain()  # also refuses what would have to wait from now on
        for delayed in self.fetch_purgatory:
            delayed.on_time()
        self.network.close()
        self.peer_log.stop()
        self.hosting.stop()
        await self.replicas.stop()
        await self.truncations.stop()
        await self.integrity.stop()
        self.broker_hosts.stop()
        self.disk_space.stop()
        self.dead_directories.stop()
        await self.snapshots.stop()
        await self.cleaning.stop()
        await self.maintenance.stop()
        await self.node.stop()
        self.channel.close()
        await self.removing.drain()
        await self.flusher.drain()
        await self.loop.run_in_executor(self._flush_threads, self.hosting.close)
        self.work_thread.close()
        self._flush_threads.shutdown()
        self._truncation_threads.shutdown()
        self._read_threads.shutdown()

    async def _abort(self) -> None:
        """The start failed: let go of tasks, sockets, locks and threads, and leave the disk as it is."""
        self.network.close()
        self.peer_log.stop()
        if hasattr(self, "node"):
            self.coordinators.stop()
            self.verification.stop()
            self.hosting.stop()
            await self.replicas.stop()
            await self.truncations.stop()
            await self.integrity.stop()
            self.dead_directories.stop()
            await self.snapshots.stop()
            await self.cleaning.stop()
            await self.maintenance.stop()
            await self.node.stop()
            self.dispatcher.abandon()
            self.channel.close()
        elif self._shared is not None:
            await self._shared.close()
        logs = getattr(self, "logs", None)
        if logs is not None:
            self.disk_space.stop()
            if hasattr(self, "removing"):
                await self.removing.drain()
            logs.release()
        self.work_thread.close()
        self._flush_threads.shutdown(wait=False)
        self._truncation_threads.shutdown(wait=False)
        self._read_threads.shutdown(wait=False)

    def on_directory_failed(self, directory: LogDirectory) -> None:
        self.hosting.on_directory_failed(directory)
        if directory.path == self.metadata_partition.log.directory.path:
            self.give_up(StorageError(f"the directory of the metadata is offline: {directory.failure}"))
        elif not self.is_standalone:
            self.dead_directories.report(directory.uuid)

    def on_metadata_fetch(
        self, broker_id: int, epoch: int, position: MetadataPosition, connection: Connection
    ) -> None:
        """Another broker follows the metadata here. The controller knows by it who lives, and who is gone."""
        if connection.on_close is None:
            connection.on_close = lambda: self.node.on_disconnect(broker_id, connection)
        self.node.on_metadata_fetch(broker_id, epoch, position, connection)

    def give_up(self, error: HeadraceError) -> None:
        """Nothing useful can be done any more: say so once, and ask to be stopped."""
        if not self.failure.done():
            self.log.error("fatal error: the broker stops", error=str(error))
            self.failure.set_result(error)

    def _on_protocol_error(self, connection: Connection, error: HeadraceError) -> None:
        if isinstance(error, NotReady):
            return  # they will come back, and the start says for itself what it waits for
        self.peer_log.warning("connection closed", connection.peer_host, error=str(error))
