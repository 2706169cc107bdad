from __future__ import annotations

from math import isnan

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from headrace.metrics.collector import BrokerCollector
from headrace.metrics.registry import TOPIC_COUNTERS, BrokerGauges, BrokerMetrics, PartitionGauges

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def scrape(collector: BrokerCollector) -> Series:
    """Through prometheus-client's own text and parser, so that what a server would read is what is tested."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    series: Series = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in series, f"{key} twice"
            series[key] = sample.value
    return series


def value(series: Series, name: str, **labels: str) -> float:
    return series[name, tuple(sorted(labels.items()))]


def test_topic_counters_per_topic_and_for_the_broker() -> None:
    metrics = BrokerMetrics()
    first, second = metrics.topic("a"), metrics.topic("b")
    first.messages_in += 3
    second.messages_in += 4
    first.bytes_in += 100
    first.failed_produce_requests += 1
    series = scrape(BrokerCollector(metrics, Hand()))
    name = "kafka_server_brokertopicmetrics_messagesin_total"
    assert value(series, name) == 7
    assert value(series, name, topic="a") == 3
    assert value(series, name, topic="b") == 4
    assert value(series, "kafka_server_brokertopicmetrics_bytesin_total", topic="a") == 100
    assert value(series, "kafka_server_brokertopicmetrics_failedproducerequests_total") == 1


def test_every_topic_counter_is_exported_and_summed() -> None:
    metrics = BrokerMetrics()
    counted = metrics.topic("a")
    for number, name in enumerate(TOPIC_COUNTERS, start=1):
        setattr(counted, name, number)
    series = scrape(BrokerCollector(metrics, Hand()))
    exported = {
        number
        for (name, labels), number in series.items()
        if name.startswith("kafka_server_brokertopicmetrics_") and labels == (("topic", "a"),)
    }
    assert exported == set(range(1, len(TOPIC_COUNTERS) + 1))


def test_a_deleted_topic_ends_but_the_total_does_not_go_back() -> None:
    metrics = BrokerMetrics()
    metrics.topic("a").bytes_out += 10
    metrics.forget_topic("a")
    metrics.forget_topic("never was")
    metrics.topic("b").bytes_out += 5
    series = scrape(BrokerCollector(metrics, Hand()))
    name = "kafka_server_brokertopicmetrics_bytesout_total"
    assert value(series, name) == 15
    assert (name, (("topic", "a"),)) not in series


def test_a_name_that_no_topic_has_gets_no_series() -> None:
    metrics = BrokerMetrics()
    metrics.topic("a")
    metrics.known_topic("a").failed_produce_requests += 1
    metrics.known_topic("x").failed_produce_requests += 1
    metrics.known_topic("y").failed_produce_requests += 1
    assert [name for name, _ in metrics.topics()] == ["a"]
    series = scrape(BrokerCollector(metrics, Hand()))
    name = "kafka_server_brokertopicmetrics_failedproducerequests_total"
    assert (value(series, name), value(series, name, topic="a")) == (3, 1)


def test_a_topic_keeps_its_object() -> None:
    metrics = BrokerMetrics()
    assert metrics.topic("a") is metrics.topic("a")
    assert metrics.request("Fetch", 12) is metrics.request("Fetch", 12)
    assert metrics.listener("PLAINTEXT") is metrics.listener("PLAINTEXT")


def test_requests_by_version_and_their_times_by_api() -> None:
    metrics = BrokerMetrics()
    metrics.request("Produce", 9).observe(1_000)
    metrics.request("Produce", 10).observe(3_000)
    metrics.request("Produce", 10).error("NOT_LEADER_OR_FOLLOWER")
    series = scrape(BrokerCollector(metrics, Hand()))
    assert value(series, "kafka_network_requestmetrics_requests_total", request="Produce", version="9") == 1
    assert value(series, "kafka_network_requestmetrics_requests_total", request="Produce", version="10") == 1
    errors = "kafka_network_requestmetrics_errors_total"
    assert value(series, errors, request="Produce", error="NOT_LEADER_OR_FOLLOWER") == 1
    times = "kafka_network_requestmetrics_totaltimems"
    assert value(series, f"{times}_count", request="Produce") == 2
    assert value(series, f"{times}_sum", request="Produce") == 4
    assert 1 <= value(series, times, request="Produce", quantile="0.99") <= 4.1


def test_what_the_time_of_requests_was() -> None:
    metrics = BrokerMetrics()
    fetch = metrics.request("Fetch", 16)
    fetch.observe(1_000)
    fetch.observe(500_000)
    fetch.waited_us += 498_000
    metrics.request("Fetch", 17).observe(2_000)
    metrics.request("Produce", 9).observe(3_000)
    metrics.quotas.told("Produce", 70)
    metrics.quotas.told("Produce", 30)
    series = scrape(BrokerCollector(metrics, Hand()))
    for name, of_fetch, of_produce in (("local", 5, 3), ("remote", 498, 0), ("throttle", 0, 100)):
        times = f"kafka_network_requestmetrics_{name}timems"
        assert value(series, f"{times}_sum", request="Fetch") == of_fetch
        assert value(series, f"{times}_count", request="Fetch") == 3
        assert value(series, f"{times}_sum", request="Produce") == of_produce


def test_the_histogram_is_cumulative_and_complete() -> None:
    metrics = BrokerMetrics()
    for us in (10, 100, 1_000, 10_000_000, 2**40):
        metrics.request("Fetch", 12).observe(us)
    series = scrape(BrokerCollector(metrics, Hand()))
    buckets = {
        float(dict(labels)["le"]): number
        for (name, labels), number in series.items()
        if name == "headrace_request_time_seconds_bucket"
    }
    ordered = [buckets[bound] for bound in sorted(buckets)]
    assert ordered == sorted(ordered)
    assert buckets[float("inf")] == 5 == value(series, "headrace_request_time_seconds_count", request="Fetch")
    assert buckets[0.000256] == 2
    assert buckets[0.001024] == 3


def test_quantiles_follow_the_last_minutes_and_not_the_whole_life() -> None:
    metrics, now = BrokerMetrics(), Hand()
    collector = BrokerCollector(metrics, now)
    request = metrics.request("Produce", 9)
    for _ in range(1000):
        request.observe(1_000_000)
    times = "kafka_network_requestmetrics_totaltimems"
    assert value(scrape(collector), times, request="Produce", quantile="0.5") > 500
    for minute in range(1, 3):
        now.seconds = minute * 61.0
        scrape(collector)
    for _ in range(10):
        request.observe(1_000)
    series = scrape(collector)
    assert value(series, times, request="Produce", quantile="0.99") < 2
    assert value(series, f"{times}_count", request="Produce") == 1010


def test_connections() -> None:
    metrics = BrokerMetrics()
    listener = metrics.listener("PLAINTEXT")
    listener.opened()
    listener.opened()
    listener.closed()
    listener.bytes_in += 9
    series = scrape(BrokerCollector(metrics, Hand()))
    labels = {"listener": "PLAINTEXT", "networkProcessor": "0"}
    prefix = "kafka_server_socket_server_metrics"
    assert value(series, f"{prefix}_connection_count", **labels) == 1
    assert value(series, f"{prefix}_connection_creation_total", **labels) == 2
    assert value(series, f"{prefix}_connection_close_total", **labels) == 1
    assert value(series, f"{prefix}_incoming_byte_total", **labels) == 9


def test_gauges_are_read_when_scraped() -> None:
    metrics = BrokerMetrics()
    collector = BrokerCollector(metrics, Hand())
    metrics.read_gauges = lambda: BrokerGauges(
        partition_count=6, is_active_controller=True, waiting_fetches=2
    )
    series = scrape(collector)
    assert value(series, "kafka_server_replicamanager_partitioncount") == 6
    assert value(series, "kafka_server_replicamanager_underreplicatedpartitions") == 0
    assert value(series, "kafka_controller_kafkacontroller_activecontrollercount") == 1
    waiting = "kafka_server_delayedoperationpurgatory_purgatorysize"
    assert value(series, waiting, delayedOperation="Fetch") == 2


def test_every_gauge_is_exported() -> None:
    metrics = BrokerMetrics()
    numbers = range(101, 101 + len(BrokerGauges._fields))
    metrics.read_gauges = lambda: BrokerGauges(*numbers)
    assert set(numbers) <= set(scrape(BrokerCollector(metrics, Hand())).values())


def test_partitions_are_read_when_scraped() -> None:
    metrics = BrokerMetrics()
    metrics.read_partitions = lambda: [
        PartitionGauges("a", 0, 500, 10, 90, 3),
        PartitionGauges("a", 1, 1, 2, 3, 4, lag=7),
    ]
    series = scrape(BrokerCollector(metrics, Hand()))
    assert value(series, "kafka_server_fetcherlagmetrics_consumerlag", topic="a", partition="1") == 7
    lagging = [name for name, _ in series if name == "kafka_server_fetcherlagmetrics_consumerlag"]
    assert len(lagging) == 1, "a leader has no lag"
    labels = {"topic": "a", "partition": "0"}
    assert value(series, "kafka_log_log_size", **labels) == 500
    assert value(series, "kafka_log_log_logstartoffset", **labels) == 10
    assert value(series, "kafka_log_log_logendoffset", **labels) == 90
    assert value(series, "kafka_log_log_numlogsegments", **labels) == 3
    assert value(series, "kafka_log_log_size", topic="a", partition="1") == 1


def test_the_loop_is_idle_while_its_thread_does_not_compute() -> None:
    metrics, hand = BrokerMetrics(), Hand()
    busy = [100.0]
    metrics.read_loop_seconds = lambda: busy[0]
    collector = BrokerCollector(metrics, hand)
    idle = "kafka_network_socketserver_networkprocessoravgidlepercent"
    first = scrape(collector)
    assert value(first, "headrace_event_loop_busy_seconds_total") == 100
    assert isnan(value(first, idle)), "there is nothing to compare with"
    hand.seconds += 70
    busy[0] += 7
    assert value(scrape(collector), idle) == pytest.approx(0.9)
    hand.seconds += 30
    busy[0] += 30
    assert value(scrape(collector), idle) == pytest.approx(0.63), "of the last one to two minutes"
    hand.seconds += 40
    assert value(scrape(collector), idle) == pytest.approx(1 - 30 / 70)
    hand.seconds += 60
    assert value(scrape(collector), idle) == pytest.approx(1.0)


def test_slices_hold_the_same_series_as_whole_families() -> None:
    metrics = BrokerMetrics()
    for number in range(25):
        metrics.topic(f"t{number}").bytes_in += number
    metrics.read_partitions = lambda: [PartitionGauges(f"t{at}", 0, at, 0, 0, 1) for at in range(25)]
    collector = BrokerCollector(metrics, Hand())
    whole = [sample for family in collector.collect() for sample in family.samples]
    sliced = [piece for piece in collector.slices(10) if piece is not None]
    assert [sample for piece in sliced for sample in piece.samples] == whole
    assert max(len(piece.samples) for piece in sliced if piece.name.startswith("kafka_log_log")) == 10
    assert max(len(piece.samples) for piece in sliced if "brokertopic" in piece.name) == 10


def test_certificates_are_shown_where_there_are_some() -> None:
    metrics = BrokerMetrics()
    name = "headrace_tls_certificate_expiry_seconds"
    assert not [each for each in scrape(BrokerCollector(metrics, Hand())) if name in str(each)]
    metrics.read_certificates = lambda: [("SSL", 60.0), ("INSIDE", -1.0)]
    series = scrape(BrokerCollector(metrics, Hand()))
    assert (value(series, name, listener="SSL"), value(series, name, listener="INSIDE")) == (60, -1)
