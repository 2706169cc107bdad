from __future__ import annotations

from headrace.metrics.cleaner import CleanerMetrics
from headrace.metrics.cleaner_families import cleaner_families


def values(counted: CleanerMetrics, now: float) -> dict[str, float]:
    return {
        sample.name: sample.value for family in cleaner_families(counted, now) for sample in family.samples
    }


def test_the_cleaner_is_exported_in_kafkas_units() -> None:
    counted = CleanerMetrics()
    counted.bytes_read, counted.bytes_written = 400, 100
    counted.max_dirty_ratio = 0.75
    counted.last_run = 10.0
    counted.read_uncleanable = lambda: 2
    found = values(counted, 12.5)
    assert found["kafka_log_logcleaner_cleaner_recopy_percent"] == 25
    assert found["kafka_log_logcleanermanager_max_dirty_percent"] == 75
    assert found["kafka_log_logcleanermanager_time_since_last_run_ms"] == 2500
    assert found["kafka_log_logcleanermanager_uncleanable_partitions_count"] == 2
    assert found["headrace_cleaner_read_bytes_total"] == 400


def test_a_cleaner_that_never_ran_has_no_time_since() -> None:
    assert values(CleanerMetrics(), 99.0)["kafka_log_logcleanermanager_time_since_last_run_ms"] == 0
