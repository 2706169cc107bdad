"""A snapshot as metrics, under the names that dashboards for Kafka use where there are such.

What is not known has no series: a zero would be believed, and an alert on what is absent can be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from headrace.audit.verdict import State
from headrace.doctor.model import Unknown
from headrace.observe.snapshot import GroupSeen, Snapshot, certified_until

_OF_PARTITION: Final = ("consumergroup", "topic", "partition")


def families(seen: Snapshot | None, *, is_failing: bool, now_ms: int) -> Iterator[Metric]:
    """Only whether the cluster answers, while it does not: what was seen before is not so any more."""
    yield GaugeMetricFamily(
        "headrace_exporter_up", "1 while the last look at the cluster was answered.", float(not is_failing)
    )
    if seen is None or is_failing:
        return
    yield GaugeMetricFamily(
        "headrace_exporter_look_age_seconds",
        "How old what the other metrics tell is.",
        max(0, now_ms - seen.at_ms) / 1000,
    )
    yield GaugeMetricFamily(
        "headrace_exporter_look_duration_seconds",
        "How long the last look at the cluster took.",
        seen.took_seconds,
    )
    yield from _groups(seen)
    yield from _audit(seen)


def _groups(seen: Snapshot) -> Iterator[Metric]:
    unknown = GaugeMetricFamily(
        "headrace_exporter_groups_unknown",
        "Groups of which it is not known how far behind they are; -1 where no group can be asked.",
    )
    if isinstance(seen.groups, Unknown):
        unknown.add_metric((), -1)
        yield unknown
        return
    unknown.add_metric((), sum(group.lag is None for group in seen.groups.values()))
    yield unknown
    yield from _lags(seen.groups)


def _lags(groups: Mapping[str, GroupSeen]) -> Iterator[Metric]:
    members = GaugeMetricFamily(
        "kafka_consumergroup_members", "Members of a group.", labels=("consumergroup",)
    )
    offset = GaugeMetricFamily(
        "kafka_consumergroup_current_offset", "What a group has committed.", labels=_OF_PARTITION
    )
    lag = GaugeMetricFamily(
        "kafka_consumergroup_lag",
        "Offsets from what a group has committed to the high watermark; without a commit all there are.",
        labels=_OF_PARTITION,
    )
    late = GaugeMetricFamily(
        "kafka_consumergroup_lag_seconds",
        "How old the first record is that a group has not read; 0 where it has read everything.",
        labels=_OF_PARTITION,
    )
    for group in groups.values():
        members.add_metric((group.group_id,), group.members)
        if isinstance(group.rails, Unknown):
            continue
        for rail in group.rails:
            labels = (group.group_id, rail.partition.topic, str(rail.partition.partition))
            if rail.committed is not None:
                offset.add_metric(labels, rail.committed)
            if rail.lag is not None:
                lag.add_metric(labels, rail.lag)
            if rail.late_ms is not None:
                late.add_metric(labels, rail.late_ms / 1000)
    yield from (members, offset, lag, late)


def _audit(seen: Snapshot) -> Iterator[Metric]:
    if not isinstance(seen.audit, Mapping):
        return
    windows = GaugeMetricFamily(
        "headrace_audit_windows", "Windows of a topic by what the audit says.", labels=("topic", "state")
    )
    until = GaugeMetricFamily(
        "headrace_audit_certified_until_timestamp_seconds",
        "The end of the last window before which every window of a topic is certified, since 1970.",
        labels=("topic",),
    )
    for topic, verdicts in seen.audit.items():
        for state in State:
            windows.add_metric((topic, state.value), sum(each.state is state for each in verdicts))
        end_ms = certified_until(verdicts)
        if end_ms is not None:
            until.add_metric((topic,), end_ms / 1000)
    yield from (windows, until)
