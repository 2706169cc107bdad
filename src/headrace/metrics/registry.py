"""The broker's counters: plain integers in slotted objects, so that counting is `metrics.bytes_in += n`.

No locks: the event loop alone writes, and the export reads on the same loop. Whoever counts keeps a
reference to its object (a partition to its topic's, a connection to its listener's) and never looks it
up on the way of a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from headrace.core.memory import MemoryShare
from headrace.core.ports_coordination import SessionState
from headrace.metrics.authorizer import AuthorizerMetrics
from headrace.metrics.cleaner import CleanerMetrics
from headrace.metrics.coordinators import CoordinatorMetrics
from headrace.metrics.histogram import LatencyHistogram
from headrace.metrics.quotas import QuotaMetrics
from headrace.metrics.scrub import ScrubMetrics
from headrace.metrics.tiering import TierGauges, TieringMetrics

TOPIC_COUNTERS: Final = (
    "bytes_in",
    "bytes_out",
    "bytes_rejected",
    "failed_fetch_requests",
    "failed_produce_requests",
    "fetch_requests",
    "messages_in",
    "produce_requests",
    "replication_bytes_in",
    "replication_bytes_out",
)
"""What is counted of each topic."""


class TopicMetrics:
    """What went through the partitions of one topic that this broker leads."""

    __slots__ = TOPIC_COUNTERS

    def __init__(self) -> None:
        self.messages_in = 0
        """Records, as the batch headers count them."""
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.produce_requests = 0
        """Partitions of this topic in produce requests, as Kafka counts them; so for the three below."""
        self.fetch_requests = 0
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0

    def add(self, other: TopicMetrics) -> None:
        for name in TOPIC_COUNTERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class RequestMetrics:
    """Requests of one API in one version. Versions of an API share the histogram and the error counts."""

    __slots__ = ("count", "errors", "total_time", "waited_us")

    def __init__(self, total_time: LatencyHistogram, errors: dict[str, int]) -> None:
        self.count = 0
        self.total_time = total_time
        """From the last byte of the request read to the first byte of the answer written."""
        self.waited_us = 0
        """The part of it in which requests waited: for data, replicas, a disk, a turn, or another broker."""
        self.errors = errors
        """How often each error was answered, by the error's name. The broker need not count NONE."""

    def observe(self, us: int) -> None:
        self.count += 1
        self.total_time.observe(us)

    def error(self, name: str) -> None:
        self.errors[name] = self.errors.get(name, 0) + 1


class ListenerMetrics:
    __slots__ = ("bytes_in", "bytes_out", "connection_count", "connections_closed", "connections_created")

    def __init__(self) -> None:
        self.connection_count = 0
        """Open now. Always created minus closed."""
        self.connections_created = 0
        self.connections_closed = 0
        self.bytes_in = 0
        self.bytes_out = 0

    def opened(self) -> None:
        self.connection_count += 1
        self.connections_created += 1

    def closed(self) -> None:
        self.connection_count -= 1
        self.connections_closed += 1


class ReplicationMetrics:
    __slots__ = ("isr_expands", "isr_shrinks", "leader_elections", "unclean_leader_elections")

    def __init__(self) -> None:
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.leader_elections = 0
        self.unclean_leader_elections = 0


class BrokerGauges(NamedTuple):
    """Read once per scrape. Whoever builds the broker supplies a function that gives one."""

    partition_count: int = 0
    leader_count: int = 0
    under_replicated_partitions: int = 0
    under_min_isr_partitions: int = 0
    at_min_isr_partitions: int = 0
    offline_replicas: int = 0
    reassigning_partitions: int = 0
    offline_log_directories: int = 0
    is_active_controller: bool = False
    offline_partitions: int = 0
    preferred_replica_imbalance: int = 0
    global_topic_count: int = 0
    global_partition_count: int = 0
    active_brokers: int = 0
    fenced_brokers: int = 0
    waiting_fetches: int = 0
    waiting_produces: int = 0
    fetch_sessions: int = 0
    fetch_session_partitions: int = 0
    max_lag: int = 0
    """Of the replica that is farthest behind what its leader has committed."""
    broker_state: int = 0
    """Kafka's numbers: 1 starting, 2 recovering, 3 running, 6 in controlled shutdown, 7 shutting down."""


class ZooKeeperGauges(NamedTuple):
    session: SessionState
    silent_seconds: float


class PartitionGauges(NamedTuple):
    topic: str
    partition: int
    size_bytes: int
    log_start_offset: int
    log_end_offset: int
    segments: int
    lag: int | None = None
    """Of a follower."""


class SpaceGauges(NamedTuple):
    """Of one log directory."""

    path: str
    free_bytes: int
    total_bytes: int
    is_full: bool


class LinkGauges(NamedTuple):
    """Of one linked partition that this broker leads."""

    topic: str
    partition: int
    lag_records: int
    lost_records: int
    is_stopped: bool


class AuthenticationMetrics:
    """Of SASL, as Kafka counts it."""

    __slots__ = ("expired", "failed", "failed_again", "reauthenticated", "succeeded")

    def __init__(self) -> None:
        self.succeeded = 0
        self.failed = 0
        self.reauthenticated = 0
        self.failed_again = 0
        self.expired = 0
        """Connections that were closed because their session was over."""


class BrokerMetrics:
    """All that one broker counts."""

    __slots__ = (
        "_departed",
        "_listeners",
        "_request_errors",
        "_request_times",
        "_requests",
        "_topics",
        "authentication",
        "authorizer",
        "cleaner",
        "coordinators",
        "log_flushes",
        "loop_lag",
        "memory",
        "quotas",
        "read_certificates",
        "read_gauges",
        "read_links",
        "read_loop_seconds",
        "read_partitions",
        "read_spaces",
        "read_tiers",
        "read_zookeeper",
        "refused_by_full_disks",
        "replication",
        "scrub",
        "tiering",
    )

    def __init__(self) -> None:
        self._topics: dict[str, TopicMetrics] = {}
        self._departed = TopicMetrics()
        self.authentication = AuthenticationMetrics()
        self._requests: dict[tuple[str, int], RequestMetrics] = {}
        self._request_times: dict[str, LatencyHistogram] = {}
        self._request_errors: dict[str, dict[str, int]] = {}
        self._listeners: dict[str, ListenerMetrics] = {}
        self.replication = ReplicationMetrics()
        self.authorizer = AuthorizerMetrics()
        self.quotas = QuotaMetrics()
        self.cleaner = CleanerMetrics()
        self.scrub = ScrubMetrics()
        self.tiering = TieringMetrics()
        self.read_tiers: Callable[[], Iterable[TierGauges]] | None = None
        """None: this broker has no object store."""
        self.coordinators = CoordinatorMetrics()
        self.log_flushes = LatencyHistogram()
        """Time of each sync of a log to disk."""
        self.memory: Iterable[MemoryShare] = ()
        """What is held on behalf of peers, by kind."""
        self.loop_lag = LatencyHistogram()
        """How late the event loop came to what was due."""
        self.read_loop_seconds: Callable[[], float | None] = lambda: None
        """Processor time of the thread that the event loop runs in. Called there."""
        self.refused_by_full_disks = 0
        """Batches of producers."""
        self.read_certificates: Callable[[], Iterable[tuple[str, float]]] = list
        """Listeners with TLS, and for how many seconds their certificates still hold."""
        self.read_spaces: Callable[[], Iterable[SpaceGauges]] = list
        self.read_links: Callable[[], Iterable[LinkGauges]] = list
        self.read_gauges: Callable[[], BrokerGauges] = BrokerGauges
        self.read_zookeeper: Callable[[], ZooKeeperGauges | None] = lambda: None
        """None of a broker that has none."""
        self.read_partitions: Callable[[], Iterable[PartitionGauges]] = list
        """Must walk a list of its own: the export reads it in slices while the broker goes on."""

    def topic(self, name: str) -> TopicMetrics:
        """The same object each time. Keep it; do not ask per request."""
        found = self._topics.get(name)
        if found is None:
            found = self._topics[name] = TopicMetrics()
        return found

    def known_topic(self, name: str) -> TopicMetrics:
        """For a name that a peer sent: a topic that is not there gets no series, only a place in the totals.

        Otherwise a peer that asks for names at random would fill the memory with counters.
        """
        return self._topics.get(name, self._departed)

    def forget_topic(self, name: str) -> None:
        """For a deleted topic: its series end, but the broker's own totals never go back."""
        gone = self._topics.pop(name, None)
        if gone is not None:
            self._departed.add(gone)

    def request(self, api: str, version: int) -> RequestMetrics:
        """`api` is Kafka's name of it: Produce, Fetch, ApiVersions."""
        found = self._requests.get((api, version))
        if found is None:
            times = self._request_times.setdefault(api, LatencyHistogram())
            errors = self._request_errors.setdefault(api, {})
            found = self._requests[api, version] = RequestMetrics(times, errors)
        return found

    def listener(self, name: str) -> ListenerMetrics:
        return self._listeners.setdefault(name, ListenerMetrics())

    def topics(self) -> list[tuple[str, TopicMetrics]]:
        return list(self._topics.items())

    def over_all_topics(self, counter: str) -> int:
        """The sum of one counter over all topics, also over those that are gone."""
        total: int = getattr(self._departed, counter)
        for counted in self._topics.values():
            total += getattr(counted, counter)
        return total

    def requests(self) -> list[tuple[str, int, RequestMetrics]]:
        return [(api, version, counted) for (api, version), counted in self._requests.items()]

    def request_times(self) -> list[tuple[str, LatencyHistogram]]:
        return list(self._request_times.items())

    def request_errors(self) -> list[tuple[str, dict[str, int]]]:
        return list(self._request_errors.items())

    def received_bytes(self) -> int:
        """From all peers, over all listeners."""
        return sum(counted.bytes_in for counted in self._listeners.values())

    def listeners(self) -> list[tuple[str, ListenerMetrics]]:
        return list(self._listeners.items())
