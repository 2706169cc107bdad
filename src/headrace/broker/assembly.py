"""Builds a broker from its parts, in order, and pushes everything that must be stopped on one exit stack. A
stop unwinds that stack, and so does a failed start.

Each part gets what it needs in its constructor. Where two parts need each other, the one that is built first
gets a function that calls the second.
"""

from __future__ import annotations

import sys
from concurrent.futures import Executor
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

from headrace.broker.authorization.table import GUARDS
from headrace.broker.broker import Broker, Start
from headrace.broker.cluster.broker_hosts import BrokerHosts
from headrace.broker.cluster.channel import ControllerChannel
from headrace.broker.cluster.dead_directories import DeadDirectories
from headrace.broker.cluster.lifecycle import BrokerLifecycle
from headrace.broker.cluster.metadata_loading import load_metadata
from headrace.broker.cluster.node import ClusterNode
from headrace.broker.cluster.reachability import Reachability
from headrace.broker.cluster.recently_fenced import RecentlyFencedBrokers
from headrace.broker.cluster.snapshots import Snapshots
from headrace.broker.cluster.standalone_node import StandaloneNode
from headrace.broker.cluster.suspect_brokers import SuspectBrokers
from headrace.broker.coordinators.coordinators import Coordinators
from headrace.broker.coordinators.producer_ids import ProducerIds
from headrace.broker.coordinators.shard_host import ShardHost
from headrace.broker.fetch.cold_reads import ColdReads
from headrace.broker.fetch.delayed_fetch import FetchPurgatory
from headrace.broker.fetch.sessions import SessionCache
from headrace.broker.fetch.wide_fetches import WideFetches
from headrace.broker.linking.assembling import make_linking
from headrace.broker.produce.produce_purgatory import ProducePurgatory
from headrace.broker.produce.refused_batches import RefusedBatches
from headrace.broker.quotas.client_quotas import ClientQuotas
from headrace.broker.quotas.connection_rates import ConnectionRates
from headrace.broker.quotas.mutation_quotas import MutationQuotas
from headrace.broker.replicas.host import FollowingPartition, ReplicaHost
from headrace.broker.replicas.manager import ReplicaManager
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.replicas.truncations import AT_ONCE, Truncations
from headrace.broker.requests.apis import BY_KEY, response_class
from headrace.broker.requests.context import Fetches, Peers, Produces, RequestContext, Storage
from headrace.broker.requests.dispatcher import Dispatcher
from headrace.broker.requests.held_memory import held_bytes
from headrace.broker.requests.in_flight import InFlightRequests
from headrace.broker.requests.listening import bind, follow_config, make_network, open_to_clients
from headrace.broker.requests.metadata_answers import MetadataAnswers
from headrace.broker.runtime.environment import Environment
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.runtime.work_thread import thread_pool
from headrace.broker.security.assembling import guard_connections, make_security, wake_fetches
from headrace.broker.security.token_expiry import TokenExpiry
from headrace.broker.security.transport import protect
from headrace.broker.storage.cleaning import Cleaning
from headrace.broker.storage.disk_space import DiskSpace
from headrace.broker.storage.flusher import Flusher
from headrace.broker.storage.hosting import Hosting
from headrace.broker.storage.integrity import Integrity
from headrace.broker.storage.log_dir_failures import LogDirFailureHandler, LogDirFailures
from headrace.broker.storage.maintenance import Maintenance
from headrace.broker.storage.object_store import followed_by, may_lead, open_store, tiering_with
from headrace.broker.storage.opening import open_storage
from headrace.broker.storage.producer_memory import ProducerMemory
from headrace.broker.storage.quarantine import Quarantine
from headrace.broker.storage.removing import Removing
from headrace.broker.storage.replica_moves import ReplicaMoves
from headrace.broker.storage.scrubbing import Scrubbing
from headrace.config.broker import BrokerConfig
from headrace.controller.shell import Controller
from headrace.coordination.local import LocalCoordination
from headrace.log.manager import LogManager

FLUSH_THREADS: Final = 4
READ_THREADS: Final = 4
TRUNCATION_THREADS: Final = AT_ONCE + 1


async def assemble(config: BrokerConfig, environment: Environment) -> Broker:
    """Binds the ports, opens the logs and reads the metadata. Nothing is served yet."""
    stops = AsyncExitStack()
    try:
        parts = _Assembly(config, environment, stops)
        await parts.open_files()
        parts.take_place_in_cluster()
        parts.lead_and_follow()
        parts.look_after_logs()
        parts.serve_requests()
        parts.say_what_stops()
        return parts.broker()
    except BaseException:
        await stops.__aexit__(*sys.exc_info())
        raise


class _Assembly:
    """Holds the parts while they are built. No part gets this object: each gets the parts that it needs."""

    # Parts that are built earlier call these three.
    replicas: ReplicaManager
    hosting: Hosting
    dispatcher: Dispatcher

    def __init__(self, config: BrokerConfig, environment: Environment, stops: AsyncExitStack) -> None:
        self.stops = stops
        self.coordination = environment.make_coordination(config)
        self.runtime = Runtime(config, environment, is_standalone=self.coordination is None)
        self.flush_threads = thread_pool(stops, FLUSH_THREADS, "flush")
        self.truncation_threads = thread_pool(stops, TRUNCATION_THREADS, "truncate")
        self.read_threads = thread_pool(stops, READ_THREADS, "read-ahead")
        self.move_thread = thread_pool(stops, 1, "move")
        stops.callback(self.runtime.work_thread.close)

    async def open_files(self) -> None:
        """The network, the logs, the metadata."""
        runtime, coordination, stops = self.runtime, self.coordination, self.stops
        self.network = make_network(runtime, self.read_threads)
        stops.callback(self.network.close)
        protect(runtime, self.network, stops)
        self.endpoints = bind(runtime, self.network)
        self.reachability = None
        if coordination is not None:
            stops.push_async_callback(coordination.close)
            self.reachability = Reachability(coordination, runtime.config.zookeeper)
            self.reachability.report_to(runtime.health)
            await coordination.start()
        self.store = await open_store(runtime)
        self.failures = LogDirFailures(runtime)
        self.opened = await open_storage(runtime, coordination, self.failures)
        self.logs = self.opened.logs
        stops.callback(self.logs.release)
        self.journal, self.metadata = await load_metadata(runtime, self.opened)
        # From here on a thread makes removals durable. Until here a removal blocks its caller.
        self.removing = Removing(runtime.loop, self.logs.removals)

    def take_place_in_cluster(self) -> None:
        runtime, metadata, coordination = self.runtime, self.metadata, self.coordination
        self.in_flight = InFlightRequests()
        self.security, self.acls = make_security(runtime, metadata)
        self.answers = MetadataAnswers(runtime, metadata)
        self.suspicions = SuspectBrokers(runtime, metadata)
        self.recently_fenced = RecentlyFencedBrokers(runtime, metadata, self.answers.forget)
        self.hosts = BrokerHosts(runtime, metadata)
        local = LocalCoordination(self.journal, cluster_id=metadata.cluster_id)
        controller = self.controller = Controller(coordination or local, metadata.store, runtime.clock)
        self.node: BrokerLifecycle
        if coordination is None:
            self.node = StandaloneNode(runtime, metadata, controller, self.logs, self.endpoints)
        else:
            self.node = ClusterNode(
                runtime, metadata, controller, self.logs, self.endpoints, self.suspicions, coordination
            )
        self.channel = ControllerChannel(
            runtime,
            metadata,
            controller,
            self.node,
            self.in_flight,
            versions={key: api.highest for key, api in BY_KEY.items()},
            serve_here=lambda message: self.dispatcher.serve_itself(message),
        )

    def lead_and_follow(self) -> None:
        """The partitions, their replicas, and the coordinators on some of them."""
        runtime, metadata, node, logs = self.runtime, self.metadata, self.node, self.logs
        partitions = self.partitions = PartitionTable(metadata.exists)
        flusher = self.flusher = Flusher(runtime.loop, self.flush_threads, runtime.metrics.log_flushes)
        self.truncations = Truncations(
            runtime,
            flusher,
            follow=lambda partition: self.replicas.follow(partition),
            unfollow=lambda partition: self.replicas.unfollow(partition),
            on_damage=self._look_at,
            threads=self.truncation_threads,
        )
        host = ReplicaHost(
            runtime, metadata, node, self.channel, partitions, flusher, self.truncations, self.suspicions
        )
        replicas = self.replicas = ReplicaManager(host)
        quarantine = self.quarantine = Quarantine(
            runtime,
            metadata,
            logs,
            partitions,
            replicas,
            host=lambda topic, indexes: self.hosting.host(topic, indexes),
        )
        quarantine.report_to(runtime.health)
        integrity = self.integrity = Integrity(runtime, metadata, partitions, quarantine)
        integrity.watch(self.network.page_cache)
        coordinators = self.coordinators = Coordinators(
            ShardHost(runtime, node, flusher, integrity.doubt, integrity.may_be_had),
            metadata,
            self.channel,
            partitions,
            ProducerIds(runtime, node, self.channel, self.in_flight),
        )
        self.tiering = tiering_with(
            self.store, host, integrity, lambda topic, rows: self.hosting.host(topic, rows), self.stops
        )
        self.linking = make_linking(
            host, coordinators, self.read_threads, lambda message: self.dispatcher.serve_itself(message)
        )
        self.hosting = Hosting(
            runtime,
            metadata,
            node,
            logs,
            partitions,
            replicas,
            integrity,
            quarantine,
            coordinators,
            self.answers.forget,
            followed_by(runtime, self.linking.consider, self.tiering),
            self.opened.high_watermarks,
            partial(may_lead, self.tiering),
        )

    def _look_at(self, partition: FollowingPartition, offset: int) -> None:
        """A log cannot be truncated, because it is damaged there. A replica in the ISR is repaired; any other
        starts again with an empty log."""
        hosted = self.partitions.find(*partition.topic_partition)
        if hosted is not partition:
            return
        if self.runtime.broker_id in hosted.isr:
            self.integrity.doubt(hosted, offset)
        else:
            self.quarantine.disagree(hosted)

    def look_after_logs(self) -> None:
        """Build the background work: disk space, retention, checkpoints, scrubbing, compaction."""
        runtime, metadata, logs, partitions = self.runtime, self.metadata, self.logs, self.partitions
        self.disk_space = DiskSpace(runtime, logs, self.hosting.open_refused)
        self.producer_memory = ProducerMemory(runtime, logs, partitions)
        self.dead_directories = DeadDirectories(runtime, metadata, self.node, self.channel)
        offline = LogDirFailureHandler(runtime, metadata, logs, self.hosting, self.dead_directories)
        self.failures.listen(offline.on_failed)
        self.snapshots = Snapshots(runtime, metadata)
        self.maintenance = Maintenance(
            runtime,
            self.node,
            logs,
            partitions,
            self.flusher,
            self.replicas,
            self.integrity,
            self.producer_memory,
            Scrubbing(runtime, metadata, partitions, self.integrity),
        )
        self.cleaning = Cleaning(runtime, logs, partitions, self.maintenance)
        self.moves = ReplicaMoves(
            runtime,
            logs,
            partitions,
            self.replicas,
            self.flusher,
            self.maintenance,
            self.integrity,
            self.quarantine,
            self.move_thread,
        )

    def serve_requests(self) -> None:
        runtime, config = self.runtime, self.runtime.config
        self.context = RequestContext(
            runtime=runtime,
            metadata=self.metadata,
            partitions=self.partitions,
            coordinators=self.coordinators,
            controller=self.controller,
            node=self.node,
            channel=self.channel,
            storage=Storage(
                self.logs,
                self.flusher,
                self.hosting,
                self.integrity,
                self.truncations,
                self.disk_space,
                self.maintenance,
                self.cleaning,
                self.moves,
            ),
            replicas=self.replicas,
            linking=self.linking,
            fetches=Fetches(
                FetchPurgatory(runtime.loop),
                SessionCache(
                    config.max_incremental_fetch_session_cache_slots,
                    lambda: runtime.random.randrange(2**31 - 1) + 1,
                    runtime.memory.fetch_sessions,
                ),
                WideFetches(),
                ColdReads(
                    runtime.loop,
                    self.read_threads,
                    self.integrity,
                    runtime.metrics.scrub,
                    None if self.tiering is None else self.tiering.reads,
                ),
            ),
            produces=Produces(
                ProducePurgatory(runtime.loop, runtime.memory.held.limit_bytes), RefusedBatches()
            ),
            peers=Peers(self.suspicions, self.recently_fenced, self.hosts, self.reachability),
            answers=self.answers,
            in_flight=self.in_flight,
            security=self.security,
            mutations=MutationQuotas(runtime, self.metadata),
            tiering=self.tiering,
            served_versions={
                key: (api.lowest, api.highest) for key, api in BY_KEY.items() if not api.internal
            },
        )
        quotas = ClientQuotas(runtime, self.metadata, response_class, self.security.is_broker)
        self.dispatcher = Dispatcher(self.context, BY_KEY, GUARDS, quotas)
        self.security.on_known = quotas.on_known
        self.network.delay_of = ConnectionRates(runtime, self.metadata).delay
        guard_connections(runtime, self.metadata, self.network, self.security, self.dispatcher, self.stops)
        wake_fetches(self.acls, self.context.fetches.purgatory)
        fetches, produces = self.context.fetches.purgatory, self.context.produces.purgatory
        runtime.memory.count_held_by(partial(held_bytes, self.coordinators, fetches, produces))

    def say_what_stops(self) -> None:
        """A stop goes through these from the last to the first, then through what `open_files` has opened."""
        stops = self.stops
        stops.push_async_exit(
            partial(_close_logs, self.runtime, self.flusher, self.hosting, self.flush_threads)
        )
        stops.push_async_callback(self.removing.drain)
        stops.callback(self.channel.close)
        stops.push_async_callback(self.node.stop)
        stops.push_async_callback(self.maintenance.stop)
        if self.tiering is not None:
            stops.push_async_callback(self.tiering.stop)
        stops.push_async_callback(self.cleaning.stop)
        stops.push_async_callback(self.snapshots.stop)
        stops.callback(self.dead_directories.stop)
        stops.callback(self.disk_space.stop)
        stops.callback(self.hosts.stop)
        stops.push_async_callback(self.integrity.stop)
        stops.callback(self.quarantine.stop)
        stops.push_async_callback(self.moves.stop)
        stops.push_async_callback(self.truncations.stop)
        stops.push_async_callback(self.replicas.stop)
        stops.push_async_callback(self.linking.stop)
        stops.callback(self.hosting.stop)
        stops.callback(self.runtime.peer_log.stop)
        stops.callback(self.network.close)
        stops.callback(self.in_flight.abandon)
        stops.callback(self.coordinators.stop)

    def broker(self) -> Broker:
        runtime = self.runtime
        runtime.on_config_change(lambda: follow_config(runtime, self.network))
        runtime.on_config_change(lambda: _follow_config(runtime, self.logs))
        runtime.on_config_change(self.replicas.on_config_changed)
        runtime.on_config_change(self.coordinators.on_config_changed)
        accept = partial(self.network.start_accepting, self.dispatcher)
        starts: list[Start] = [self.disk_space.start, self.producer_memory.start]
        if not runtime.is_standalone:  # brokers must reach each other before any of them is ready
            starts += [accept, self.replicas.start]
        tokens = self.context.security.tokens
        if tokens is not None:
            expiry = TokenExpiry(runtime, self.controller, tokens.expiry_check_ms)
            self.stops.push_async_callback(expiry.stop)
            starts.append(expiry.start)
        starts += [
            partial(self.node.start, self.linking.after(self.hosting.start)),
            self.maintenance.start,
            *([] if self.tiering is None else [self.tiering.start]),
            self.cleaning.start,
            self.moves.start,
            self.snapshots.start,
            partial(open_to_clients, self.security, self.network, self.dispatcher),
        ]
        if runtime.is_standalone:
            starts.append(accept)
        return Broker(self.context, self.dispatcher, self.network, starts, self.stops)


async def _close_logs(
    runtime: Runtime, flusher: Flusher, hosting: Hosting, threads: Executor, *failure: Any
) -> None:
    """Close the logs cleanly. After a failed start, leave the disk as it is."""
    if failure[1] is None:
        await flusher.drain()
        await runtime.loop.run_in_executor(threads, hosting.close)


def _follow_config(runtime: Runtime, logs: LogManager) -> None:
    logs.threads_per_directory = runtime.config.num_recovery_threads_per_data_dir
