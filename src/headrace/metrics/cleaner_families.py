"""The cleaner's counters as Prometheus families, under the names that Kafka's have."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from headrace.metrics.cleaner import CleanerMetrics


def cleaner_families(counted: CleanerMetrics, now: float) -> Iterator[Metric]:
    """`now` is of the clock that `last_run` is of."""
    since = (now - counted.last_run) * 1000 if counted.last_run else 0.0
    for name, value, text in (
        (
            "kafka_log_logcleanermanager_uncleanable_partitions_count",
            counted.read_uncleanable(),
            "Partitions that the cleaner has given up, because of damage.",
        ),
        (
            "kafka_log_logcleanermanager_max_dirty_percent",
            100 * counted.max_dirty_ratio,
            "Share of the dirtiest compacted log that is not compacted.",
        ),
        (
            "kafka_log_logcleanermanager_time_since_last_run_ms",
            since,
            "Milliseconds since the cleaner last looked for work.",
        ),
        (
            "kafka_log_logcleaner_cleaner_recopy_percent",
            100 * counted.recopied_ratio,
            "Share of the bytes read by the cleaner that it had to write again.",
        ),
        (
            "kafka_log_logcleaner_max_clean_time_secs",
            counted.last_pass_seconds,
            "Seconds that the last pass over a log took.",
        ),
        (
            "kafka_log_logcleaner_max_buffer_utilization_percent",
            100 * counted.map_utilisation,
            "How full the table of keys was in the last pass.",
        ),
    ):
        yield GaugeMetricFamily(name, text, value=float(value))
    for name, count, text in (
        ("headrace_cleaner_read_bytes", counted.bytes_read, "Bytes of segments that were cleaned."),
        ("headrace_cleaner_written_bytes", counted.bytes_written, "Bytes that were left of them."),
        ("headrace_cleaner_passes", counted.passes, "Passes over a log that came to their end."),
        ("headrace_cleaner_failed_passes", counted.failed_passes, "Passes that did not."),
        ("headrace_cleaner_lost_workers", counted.lost_workers, "Processes of the cleaner that were lost."),
    ):
        yield CounterMetricFamily(name, text, value=count)
