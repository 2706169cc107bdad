"""The scrub's counters as Prometheus families. Kafka has nothing of this kind."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from headrace.metrics.scrub import ScrubMetrics


def scrub_families(counted: ScrubMetrics) -> Iterator[Metric]:
    for name, count, text in (
        ("headrace_log_scrub_read_bytes", counted.bytes_read, "Bytes that the scrub has verified."),
        ("headrace_log_damage_found", counted.damage_found, "Damaged places found in segments."),
        ("headrace_log_ranges_mended", counted.ranges_mended, "Damaged ranges put back from other replicas."),
        ("headrace_log_cold_reads", counted.cold_reads, "Ranges read and verified by threads for fetches."),
    ):
        yield CounterMetricFamily(name, text, value=count)
    for name, value, text in (
        (
            "headrace_log_scrub_last_pass_timestamp_seconds",
            counted.last_pass_ms / 1000,
            "When the scrub last came to the end of all sealed segments; 0 if it never did.",
        ),
        (
            "headrace_log_scrub_pass_ratio",
            counted.pass_progress,
            "How much of the scrub's pass is done; 1 between two passes.",
        ),
    ):
        yield GaugeMetricFamily(name, text, value=value)
