"""Metrics of snapshots: what is known, by the names that dashboards use, and nothing else."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from headrace.exporter.families import families
from headrace.observe.snapshot import Snapshot
from tests.unit.observe.made_up import broken_look, empty_look, small_look, snapshot_of

LABELS = ("consumergroup", "topic", "partition", "state")
Series = dict[tuple[str, tuple[str, ...]], float]


def scraped(seen: Snapshot | None, *, is_failing: bool = False, later_ms: int = 0) -> Series:
    """Rendered as Prometheus gets it, and read again."""

    class Once(Collector):
        def collect(self) -> object:  # type: ignore[override]  # any iterable will do
            return families(seen, is_failing=is_failing, now_ms=(seen.at_ms if seen else 0) + later_ms)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once())
    text = generate_latest(registry).decode()
    return {
        (sample.name, tuple(sample.labels[name] for name in LABELS if name in sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_lags_in_offsets_and_in_seconds() -> None:
    found = scraped(snapshot_of(small_look(0), small_look(1)), later_ms=1500)
    assert found["kafka_consumergroup_lag", ("reports", "orders", "3")] == 650
    assert found["kafka_consumergroup_lag_seconds", ("reports", "orders", "3")] == 3605
    assert found["kafka_consumergroup_lag", ("billing", "orders", "0")] == 0
    assert found["kafka_consumergroup_lag_seconds", ("billing", "orders", "0")] == 0
    assert found["kafka_consumergroup_current_offset", ("reports", "orders", "0")] == 400
    assert found["kafka_consumergroup_members", ("billing",)] == 1
    assert found["headrace_exporter_up", ()] == 1
    assert found["headrace_exporter_look_age_seconds", ()] == 1.5
    assert found["headrace_exporter_groups_unknown", ()] == 0


def test_windows_of_the_audit() -> None:
    found = scraped(snapshot_of(small_look()))
    assert found["headrace_audit_windows", ("orders", "different")] == 1
    assert found["headrace_audit_windows", ("clicks", "certified")] == 238
    assert found["headrace_audit_windows", ("clicks", "incomplete")] == 0
    assert (
        found["headrace_audit_certified_until_timestamp_seconds", ("orders",)]
        < found["headrace_audit_certified_until_timestamp_seconds", ("clicks",)]
    )


def test_what_is_not_known_has_no_series() -> None:
    found = scraped(snapshot_of(broken_look()))
    assert not [name for name, _ in found if name.startswith(("kafka_consumergroup_lag", "headrace_audit"))]
    assert found["headrace_exporter_groups_unknown", ()] == 1


def test_an_empty_cluster_has_no_groups_and_none_unknown() -> None:
    assert scraped(snapshot_of(empty_look()))["headrace_exporter_groups_unknown", ()] == 0


def test_a_silent_cluster_tells_nothing_of_before() -> None:
    assert scraped(snapshot_of(small_look()), is_failing=True) == {("headrace_exporter_up", ()): 0}
    assert scraped(None, is_failing=True) == {("headrace_exporter_up", ()): 0}
