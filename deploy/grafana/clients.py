"""The dashboard of topics and of those who use them."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import CLUSTER, JOB, TOPIC, curves, page, rate, variable

_TOPICS = "kafka_server_brokertopicmetrics"
_CHOSEN = f'{CLUSTER}, topic=~"$topic", topic!=""'
"""The series without a topic is that of a whole broker."""


def clients() -> dashboard.Dashboard:
    made = page(
        "clients",
        "Headrace / Topics and clients",
        "Who writes and reads how much, who is refused, and which logs grow. Twenty topics at most.",
        [variable(*JOB), variable(*TOPIC, several=True)],
    )
    return _rights(_groups(_logs(_topics(made))))


def _most(expression: str) -> str:
    return f"topk(20, {expression})"


def _topics(made: dashboard.Dashboard) -> dashboard.Dashboard:
    for title, name, unit, text in (
        ("Records in", "messagesin", "ops", "Appended a second, as the batch headers count them."),
        ("Bytes in", "bytesin", "Bps", "From producers."),
        ("Bytes out", "bytesout", "Bps", "To consumers."),
    ):
        query = (_most(rate(f"{_TOPICS}_{name}_total", _CHOSEN, "topic")), "{{topic}}")
        made.with_panel(curves(title, [query], text=text, unit=unit, width=8))
    failed = [
        (_most(rate(f"{_TOPICS}_failedproducerequests_total", _CHOSEN, "topic")), "{{topic}} produce"),
        (_most(rate(f"{_TOPICS}_failedfetchrequests_total", _CHOSEN, "topic")), "{{topic}} fetch"),
    ]
    made.with_panel(curves("Refused", failed, text="Requests answered with an error.", unit="ops"))
    rejected = [(_most(rate(f"{_TOPICS}_bytesrejected_total", _CHOSEN, "topic")), "{{topic}}")]
    made.with_panel(
        curves("Bytes refused", rejected, text="Of batches too large, too old or invalid.", unit="Bps")
    )
    return made


def _logs(made: dashboard.Dashboard) -> dashboard.Dashboard:
    made.with_row(dashboard.Row("Logs"))
    for panel in (
        curves(
            "Size",
            [(_most(f"sum by (topic) (kafka_log_log_size{{{_CHOSEN}}})"), "{{topic}}")],
            text="On all disks, replicas included.",
            unit="bytes",
            width=8,
        ),
        curves(
            "Busiest partitions",
            [
                (
                    "topk(20, max by (topic, partition) "
                    f"(deriv(kafka_log_log_logendoffset{{{_CHOSEN}}}[$__rate_interval])))",
                    "{{topic}}-{{partition}}",
                )
            ],
            text="Offsets a second. One far above the others has a key that gets most records.",
            unit="ops",
            width=8,
        ),
        curves(
            "Offsets kept",
            [
                (
                    _most(
                        f"sum by (topic) (max by (topic, partition) (kafka_log_log_logendoffset{{{_CHOSEN}}})"
                        f" - max by (topic, partition) (kafka_log_log_logstartoffset{{{_CHOSEN}}}))"
                    ),
                    "{{topic}}",
                )
            ],
            text="From the first to the last. A compacted topic has fewer records than that.",
            width=8,
        ),
    ):
        made.with_panel(panel)
    return made


def _groups(made: dashboard.Dashboard) -> dashboard.Dashboard:
    made.with_row(dashboard.Row("Groups and transactions"))
    groups = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    states = ("stable", "preparingrebalance", "completingrebalance", "empty")
    consumer = "kafka_server_group_coordinator_metrics_consumer_group_count"
    for panel in (
        curves(
            "Groups of the classic protocol",
            [(f"sum({groups}{state}{{{CLUSTER}}})", state) for state in states],
            text="A group that is often preparing a rebalance has a member that comes and goes.",
            width=8,
            stacked=True,
        ),
        curves(
            "Groups of the consumer protocol",
            [(f"sum by (state) ({consumer}{{{CLUSTER}}})", "{{state}}")],
            text="By state.",
            width=8,
            stacked=True,
        ),
        curves(
            "Transactions",
            [
                (f"sum by (state) (headrace_transactional_ids{{{CLUSTER}}})", "{{state}}"),
                (
                    f"sum(kafka_server_replicamanager_partitionswithlatetransactionscount{{{CLUSTER}}})",
                    "partitions that hang",
                ),
            ],
            text="Transactional ids by state, and partitions where readers of committed records stand still.",
            width=8,
        ),
    ):
        made.with_panel(panel)
    return made


def _rights(made: dashboard.Dashboard) -> dashboard.Dashboard:
    made.with_row(dashboard.Row("Quotas and rights"))
    for panel in (
        curves(
            "Told to wait",
            [(rate("headrace_quota_throttle_seconds_total", CLUSTER, "quota"), "{{quota}}")],
            text="Seconds a second, over all clients that are over a quota.",
            unit="s",
            width=6,
        ),
        curves(
            "Connections held by quotas",
            [(f"sum by (instance) (headrace_quota_muted_connections{{{CLUSTER}}})", "{{instance}}")],
            text="Not read until their clients are within the quota again.",
            width=6,
        ),
        curves(
            "Logins",
            [(rate("headrace_authentications_total", CLUSTER, "kind, outcome"), "{{kind}} {{outcome}}")],
            text="By SASL, a second.",
            unit="ops",
            width=6,
        ),
        curves(
            "Denied",
            [
                (
                    rate("headrace_authorizer_denied_total", CLUSTER, "operation, resource_type"),
                    "{{operation}} {{resource_type}}",
                )
            ],
            text="Rights that clients asked for and do not have. `headrace acl explain` says why.",
            unit="ops",
            width=6,
        ),
    ):
        made.with_panel(panel)
    return made
