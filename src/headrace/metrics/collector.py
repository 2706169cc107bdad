"""Turns the counters into Prometheus families, named as the usual JMX exporter rules name those of Kafka.

Importing this module imports prometheus-client, so only a broker that serves metrics does it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from headrace.core.ports_coordination import SessionState
from headrace.metrics.authentication_families import authentication_families
from headrace.metrics.authorizer_families import authorizer_families
from headrace.metrics.cleaner_families import cleaner_families
from headrace.metrics.coordinator_families import coordinator_families
from headrace.metrics.histogram import LatencyHistogram, cumulative, quantiles_us
from headrace.metrics.host_families import host_families
from headrace.metrics.link_families import link_families
from headrace.metrics.loop_idleness import LoopIdleness
from headrace.metrics.memory_families import memory_families
from headrace.metrics.quota_families import quota_families
from headrace.metrics.registry import BrokerGauges, BrokerMetrics, PartitionGauges, ZooKeeperGauges
from headrace.metrics.request_families import times_by_part
from headrace.metrics.scrub_families import scrub_families
from headrace.metrics.tiering_families import tiering_families

QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
WINDOW_SECONDS = 60.0

# The last part of Kafka's metric name, our counter, and what it counts.
_TOPIC_COUNTERS = (
    ("messagesin", "messages_in", "Records appended, as the batch headers count them."),
    ("bytesin", "bytes_in", "Bytes of batches appended."),
    ("bytesout", "bytes_out", "Bytes of batches sent to consumers."),
    ("bytesrejected", "bytes_rejected", "Bytes of batches that were refused."),
    ("totalproducerequests", "produce_requests", "Produce requests, once for each partition in them."),
    ("totalfetchrequests", "fetch_requests", "Fetch requests, once for each partition in them."),
    ("failedproducerequests", "failed_produce_requests", "Produce requests answered with an error."),
    ("failedfetchrequests", "failed_fetch_requests", "Fetch requests answered with an error."),
    ("replicationbytesin", "replication_bytes_in", "Bytes copied from leaders."),
    ("replicationbytesout", "replication_bytes_out", "Bytes copied by followers."),
)

_GAUGES = (
    ("kafka_server_replicamanager_partitioncount", "partition_count", "Replicas on this broker."),
    ("kafka_server_replicamanager_leadercount", "leader_count", "Partitions led by this broker."),
    (
        "kafka_server_replicamanager_underreplicatedpartitions",
        "under_replicated_partitions",
        "Partitions led here with fewer replicas in sync than they have.",
    ),
    (
        "kafka_server_replicamanager_underminisrpartitioncount",
        "under_min_isr_partitions",
        "Partitions led here with fewer replicas in sync than min.insync.replicas.",
    ),
    (
        "kafka_server_replicamanager_atminisrpartitioncount",
        "at_min_isr_partitions",
        "Partitions led here with exactly min.insync.replicas in sync.",
    ),
    (
        "kafka_server_replicamanager_offlinereplicacount",
        "offline_replicas",
        "Replicas whose directory failed.",
    ),
    (
        "kafka_server_replicamanager_reassigningpartitions",
        "reassigning_partitions",
        "Partitions led here that are moving.",
    ),
    (
        "kafka_log_logmanager_offlinelogdirectorycount",
        "offline_log_directories",
        "Log directories that failed.",
    ),
    (
        "kafka_controller_kafkacontroller_activecontrollercount",
        "is_active_controller",
        "1 on the broker that is the controller.",
    ),
    (
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "offline_partitions",
        "Partitions of the cluster without a leader.",
    ),
    (
        "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
        "preferred_replica_imbalance",
        "Partitions of the cluster that are not led by their preferred replica.",
    ),
    ("kafka_controller_kafkacontroller_globaltopiccount", "global_topic_count", "Topics of the cluster."),
    (
        "kafka_controller_kafkacontroller_globalpartitioncount",
        "global_partition_count",
        "Partitions of the cluster.",
    ),
    (
        "kafka_controller_kafkacontroller_activebrokercount",
        "active_brokers",
        "Brokers that are registered and serve.",
    ),
    (
        "kafka_controller_kafkacontroller_fencedbrokercount",
        "fenced_brokers",
        "Brokers that are registered and fenced.",
    ),
    (
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "fetch_sessions",
        "Fetch sessions that are remembered.",
    ),
    (
        "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached",
        "fetch_session_partitions",
        "Partitions in those sessions.",
    ),
    (
        "kafka_server_replicafetchermanager_maxlag",
        "max_lag",
        "Records that the replica farthest behind its leader lacks of what is committed.",
    ),
    ("kafka_server_kafkaserver_brokerstate", "broker_state", "State of the broker; 3 is running."),
)

_PARTITION_GAUGES = (
    ("kafka_log_log_size", "size_bytes", "Bytes of the partition on disk."),
    ("kafka_log_log_logstartoffset", "log_start_offset", "First offset of the partition."),
    ("kafka_log_log_logendoffset", "log_end_offset", "Offset after the last record of the partition."),
    ("kafka_log_log_numlogsegments", "segments", "Segments of the partition."),
)


class BrokerCollector:
    """A prometheus-client collector. `now` gives seconds that never go back."""

    def __init__(self, metrics: BrokerMetrics, now: Callable[[], float]) -> None:
        self._metrics = metrics
        self._now = now
        # Quantiles are taken over what came since `_old`, which is between one and two windows back as
        # long as somebody scrapes: over the whole life of a broker they would hardly move any more.
        self._old: dict[str, list[int]] = {}
        self._young: dict[str, list[int]] = {}
        self._young_since = now()
        self._loop = LoopIdleness()

    def collect(self) -> Iterator[Metric]:
        """Whole families, for a registry of prometheus-client."""
        for family in self.slices(sys.maxsize):
            if family is not None:
                yield family

    def slices(self, size: int) -> Iterator[Metric | None]:
        """The same in pieces of at most `size` series, so that an event loop can breathe between them.

        Pieces of one family follow each other. None is a pause without a piece.
        """
        for name, field, text in _TOPIC_COUNTERS:
            yield from self._topic_family(name, field, text, size)
        yield from self._requests(size)
        yield from self._connections()
        yield from self._gauges()
        yield from memory_families(self._metrics.memory)
        yield from host_families(self._metrics)
        yield from self._loop.families(self._now(), self._metrics.read_loop_seconds())
        yield from link_families(self._metrics)
        yield from cleaner_families(self._metrics.cleaner, self._now())
        yield from scrub_families(self._metrics.scrub)
        if self._metrics.read_tiers is not None:
            yield from tiering_families(self._metrics.tiering, self._metrics.read_tiers())
        yield from authentication_families(self._metrics)
        yield from authorizer_families(self._metrics.authorizer)
        yield from quota_families(self._metrics.quotas)
        counts = yield from self._metrics.coordinators.count(size)
        yield from coordinator_families(self._metrics.coordinators, counts)
        rows: list[PartitionGauges] = []
        for row in self._metrics.read_partitions():
            rows.append(row)
            if len(rows) % size == 0:
                yield None
        for name, field, text in _PARTITION_GAUGES:
            for start in range(0, len(rows), size):
                family = GaugeMetricFamily(name, text, labels=("topic", "partition"))
                for row in rows[start : start + size]:
                    family.add_metric((row.topic, str(row.partition)), getattr(row, field))
                yield family
        yield from _follower_lags(rows, size)

    def _topic_family(self, name: str, field: str, text: str, size: int) -> Iterator[Metric]:
        topics = self._metrics.topics()
        # Kafka has one series for the whole broker, without a topic, beside those of the topics.
        series: list[tuple[dict[str, str], int]] = [({}, self._metrics.over_all_topics(field))]
        series += [({"topic": topic}, getattr(counted, field)) for topic, counted in topics]
        for start in range(0, len(series), size):
            family = CounterMetricFamily(f"kafka_server_brokertopicmetrics_{name}", text)
            for labels, value in series[start : start + size]:
                family.add_sample(f"{family.name}_total", labels, value)
            yield family

    def _requests(self, size: int) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "kafka_network_requestmetrics_requests", "Requests answered.", labels=("request", "version")
        )
        for api, version, counted in self._metrics.requests():
            requests.add_metric((api, str(version)), counted.count)
        yield requests
        errors = CounterMetricFamily(
            "kafka_network_requestmetrics_errors", "Errors answered.", labels=("request", "error")
        )
        for api, by_name in self._metrics.request_errors():
            for error, count in list(by_name.items()):
                errors.add_metric((api, error), count)
        yield errors
        yield from self._times(size)

    def _times(self, size: int) -> Iterator[Metric]:
        self._turn_window()
        apis = self._metrics.request_times()
        # An API has some sixteen series in each of the two families.
        step = max(1, size // 16)
        for start in range(0, len(apis) or 1, step):
            yield self._summary(apis[start : start + step])
        for start in range(0, len(apis) or 1, step):
            yield _histogram(apis[start : start + step])
        yield from times_by_part(self._metrics, size)
        flushes = self._metrics.log_flushes
        yield SummaryMetricFamily(
            "kafka_log_logflushstats_logflushrateandtimems",
            "Milliseconds of each sync of a log to disk.",
            count_value=flushes.count,
            sum_value=flushes.sum_us / 1000,
        )

    def _summary(self, apis: list[tuple[str, LatencyHistogram]]) -> Metric:
        family = SummaryMetricFamily(
            "kafka_network_requestmetrics_totaltimems",
            "Milliseconds from the last byte of a request to the first of its answer. Quantiles are those of "
            "the last one to two minutes.",
            labels=("request",),
        )
        for api, times in apis:
            family.add_metric((api,), count_value=times.count, sum_value=times.sum_us / 1000)
            recent = self._recent(api, times.counts)
            for quantile, us in zip(QUANTILES, quantiles_us(recent, QUANTILES), strict=True):
                family.add_sample(family.name, {"request": api, "quantile": str(quantile)}, us / 1000)
        return family

    def _turn_window(self) -> None:
        now = self._now()
        if now - self._young_since >= WINDOW_SECONDS:
            self._old = self._young
            self._young = {api: list(times.counts) for api, times in self._metrics.request_times()}
            self._young_since = now

    def _recent(self, api: str, counts: list[int]) -> list[int]:
        before = self._old.get(api)
        return (
            list(counts) if before is None else [now - then for now, then in zip(counts, before, strict=True)]
        )

    def _connections(self) -> Iterator[Metric]:
        prefix = "kafka_server_socket_server_metrics"
        labels = ("listener", "networkProcessor")
        opened = GaugeMetricFamily(f"{prefix}_connection_count", "Connections open now.", labels=labels)
        created = CounterMetricFamily(f"{prefix}_connection_creation", "Connections opened.", labels=labels)
        closed = CounterMetricFamily(f"{prefix}_connection_close", "Connections closed.", labels=labels)
        received = CounterMetricFamily(f"{prefix}_incoming_byte", "Bytes read from sockets.", labels=labels)
        sent = CounterMetricFamily(f"{prefix}_outgoing_byte", "Bytes written to sockets.", labels=labels)
        for name, counted in self._metrics.listeners():
            # One event loop is one network processor.
            values = (name, "0")
            opened.add_metric(values, counted.connection_count)
            created.add_metric(values, counted.connections_created)
            closed.add_metric(values, counted.connections_closed)
            received.add_metric(values, counted.bytes_in)
            sent.add_metric(values, counted.bytes_out)
        yield from (opened, created, closed, received, sent)

    def _gauges(self) -> Iterator[Metric]:
        gauges: BrokerGauges = self._metrics.read_gauges()
        for name, field, text in _GAUGES:
            yield GaugeMetricFamily(name, text, value=float(getattr(gauges, field)))
        waiting = GaugeMetricFamily(
            "kafka_server_delayedoperationpurgatory_purgatorysize",
            "Requests that wait for data or for replicas.",
            labels=("delayedOperation",),
        )
        waiting.add_metric(("Fetch",), gauges.waiting_fetches)
        waiting.add_metric(("Produce",), gauges.waiting_produces)
        yield waiting
        yield from _zookeeper(self._metrics.read_zookeeper())
        counted = self._metrics.replication
        for name, value, text in (
            (
                "kafka_server_replicamanager_isrshrinks",
                counted.isr_shrinks,
                "Replicas that fell out of sync.",
            ),
            ("kafka_server_replicamanager_isrexpands", counted.isr_expands, "Replicas that came into sync."),
            (
                "kafka_controller_controllerstats_leaderelection",
                counted.leader_elections,
                "Leaders elected by this controller.",
            ),
            (
                "kafka_controller_controllerstats_uncleanleaderelections",
                counted.unclean_leader_elections,
                "Leaders elected out of sync.",
            ),
        ):
            yield CounterMetricFamily(name, text, value=value)


def _follower_lags(rows: Sequence[PartitionGauges], size: int) -> Iterator[Metric]:
    following = [row for row in rows if row.lag is not None]
    for start in range(0, len(following), size):
        family = GaugeMetricFamily(
            "kafka_server_fetcherlagmetrics_consumerlag",
            "Records that a follower lacks of what its leader has committed.",
            labels=("topic", "partition"),
        )
        for row in following[start : start + size]:
            family.add_metric((row.topic, str(row.partition)), float(row.lag or 0))
        yield family


def _zookeeper(gauges: ZooKeeperGauges | None) -> Iterator[Metric]:
    if gauges is None:
        return
    session = GaugeMetricFamily(
        "headrace_zookeeper_session", "1 for the state that the session is in.", labels=("state",)
    )
    for state in SessionState:
        session.add_metric((state.value,), float(state is gauges.session))
    yield session
    yield GaugeMetricFamily(
        "headrace_zookeeper_silence_seconds",
        "Since ZooKeeper was last heard of.",
        value=gauges.silent_seconds,
    )


def _histogram(apis: list[tuple[str, LatencyHistogram]]) -> Metric:
    family = HistogramMetricFamily(
        "headrace_request_time_seconds",
        "Seconds from the last byte of a request to the first of its answer.",
        labels=("request",),
    )
    for api, times in apis:
        family.add_metric((api,), cumulative(times.counts), sum_value=times.sum_us / 1e6)
    return family
