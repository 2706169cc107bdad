"""What the handlers of requests may use. Each takes the parts that it needs, and nobody hands it more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.broker.cluster.broker_hosts import BrokerHosts
from headrace.broker.cluster.channel import ControllerChannel
from headrace.broker.cluster.lifecycle import BrokerLifecycle
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.reachability import Reachability
from headrace.broker.cluster.recently_fenced import RecentlyFencedBrokers
from headrace.broker.cluster.suspect_brokers import SuspectBrokers
from headrace.broker.coordinators.coordinators import Coordinators
from headrace.broker.fetch.cold_reads import ColdReads
from headrace.broker.fetch.delayed_fetch import FetchPurgatory
from headrace.broker.fetch.sessions import SessionCache
from headrace.broker.fetch.wide_fetches import WideFetches
from headrace.broker.linking.linking import Linking
from headrace.broker.produce.produce_purgatory import ProducePurgatory
from headrace.broker.produce.refused_batches import RefusedBatches
from headrace.broker.quotas.mutation_quotas import MutationQuotas
from headrace.broker.replicas.manager import ReplicaManager
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.replicas.truncations import Truncations
from headrace.broker.requests.in_flight import InFlightRequests
from headrace.broker.requests.metadata_answers import MetadataAnswers
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.security.security import Security
from headrace.broker.storage.cleaning import Cleaning
from headrace.broker.storage.disk_space import DiskSpace
from headrace.broker.storage.flusher import Flusher
from headrace.broker.storage.hosting import Hosting
from headrace.broker.storage.integrity import Integrity
from headrace.broker.storage.maintenance import Maintenance
from headrace.broker.storage.replica_moves import ReplicaMoves
from headrace.controller.shell import Controller
from headrace.log.manager import LogManager

if TYPE_CHECKING:
    from headrace.broker.tiering.tiering import Tiering


@dataclass(frozen=True, slots=True)
class Storage:
    """The logs of this broker, and who looks after them."""

    logs: LogManager
    flusher: Flusher
    hosting: Hosting
    integrity: Integrity
    truncations: Truncations
    disk_space: DiskSpace
    maintenance: Maintenance
    cleaning: Cleaning
    moves: ReplicaMoves


@dataclass(frozen=True, slots=True)
class Fetches:
    purgatory: FetchPurgatory
    sessions: SessionCache
    wide: WideFetches
    cold_reads: ColdReads


@dataclass(frozen=True, slots=True)
class Produces:
    purgatory: ProducePurgatory
    refused: RefusedBatches


@dataclass(frozen=True, slots=True)
class Peers:
    """What this broker has seen of the others, beyond the metadata."""

    suspicions: SuspectBrokers
    recently_fenced: RecentlyFencedBrokers
    hosts: BrokerHosts
    reachability: Reachability | None
    """Of ZooKeeper; a broker that is alone has none to reach."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    runtime: Runtime
    metadata: MetadataCache
    partitions: PartitionTable
    coordinators: Coordinators
    controller: Controller
    node: BrokerLifecycle
    channel: ControllerChannel
    storage: Storage
    replicas: ReplicaManager
    linking: Linking
    fetches: Fetches
    produces: Produces
    peers: Peers
    answers: MetadataAnswers
    in_flight: InFlightRequests
    security: Security
    mutations: MutationQuotas
    tiering: Tiering | None
    """None: this broker has no object store."""
    served_versions: Mapping[int, tuple[int, int]]
    """The lowest and the highest version of each API that clients may use."""
