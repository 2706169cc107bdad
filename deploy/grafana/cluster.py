"""The dashboard of a whole cluster: is anything wrong, where does it go through, what is nearly used up?"""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import CLUSTER, JOB, curves, number, page, rate, variable

_CONTROLLER = "kafka_controller_kafkacontroller"
_REPLICAS = "kafka_server_replicamanager"
_TOPICS = "kafka_server_brokertopicmetrics"


def cluster() -> dashboard.Dashboard:
    made = page(
        "cluster",
        "Headrace / Cluster",
        "Is anything wrong with this cluster, what goes through it, and what is nearly used up?",
        [variable(*JOB)],
    )
    return _load(_traffic(_state(made)))


def _state(made: dashboard.Dashboard) -> dashboard.Dashboard:
    def counted(title: str, metric: str, how: str, text: str, bad_above: float | None = None) -> None:
        expression = f"{how}({metric}{{{CLUSTER}}})"
        made.with_panel(number(title, expression, text=text, bad_above=bad_above))

    counted("Brokers that serve", f"{_CONTROLLER}_activebrokercount", "max", "Registered and not fenced.")
    counted(
        "Brokers fenced", f"{_CONTROLLER}_fencedbrokercount", "max", "Registered, but down or cut off.", 1
    )
    counted(
        "Without a leader",
        f"{_CONTROLLER}_offlinepartitionscount",
        "max",
        "Partitions that can be neither read nor written.",
        1,
    )
    counted("Below min ISR", f"{_REPLICAS}_underminisrpartitioncount", "sum", "acks=all is refused there.", 1)
    counted(
        "Under-replicated",
        f"{_REPLICAS}_underreplicatedpartitions",
        "sum",
        "Partitions with replicas out of sync.",
        1,
    )
    counted(
        "Active controllers",
        f"{_CONTROLLER}_activecontrollercount",
        "sum",
        "One, except for moments. More than one for long is a defect.",
        2,
    )
    made.with_panel(
        number(
            "ZooKeeper silent for",
            f"max(headrace_zookeeper_silence_seconds{{{CLUSTER}}})",
            text="Of the broker that has not heard of it for the longest time.",
            unit="s",
            bad_above=15,
        )
    )
    counted("Moving", f"{_REPLICAS}_reassigningpartitions", "sum", "Partitions that are being reassigned.")
    return made


def _traffic(made: dashboard.Dashboard) -> dashboard.Dashboard:
    made.with_row(dashboard.Row("Traffic"))
    for title, name, text in (
        ("Bytes in", "bytesin", "From producers, by broker."),
        ("Bytes out", "bytesout", "To consumers, by broker."),
        ("Copied by followers", "replicationbytesout", "Bytes that followers fetch, by leader."),
    ):
        query = (
            f'sum by (instance) (rate({_TOPICS}_{name}_total{{{CLUSTER}, topic=""}}[$__rate_interval]))',
            "{{instance}}",
        )
        made.with_panel(curves(title, [query], text=text, unit="Bps", width=8, stacked=True))
    made.with_panel(
        curves(
            "Produce and Fetch, 99 % within",
            [
                (
                    "histogram_quantile(0.99, sum by (request, le) (rate(headrace_request_time_seconds_bucket"
                    f'{{{CLUSTER}, request=~"Produce|Fetch"}}[$__rate_interval])))',
                    "{{request}}",
                )
            ],
            text="Over all brokers. A fetch that waits for data counts its wait.",
            unit="s",
        )
    )
    made.with_panel(
        curves(
            "Refused",
            [
                (
                    rate("kafka_network_requestmetrics_errors_total", CLUSTER, "request, error"),
                    "{{request}} {{error}}",
                ),
            ],
            text="Errors answered a second, by request and error.",
            unit="ops",
        )
    )
    return made


def _load(made: dashboard.Dashboard) -> dashboard.Dashboard:
    made.with_row(dashboard.Row("Load and room"))
    free = f"headrace_log_directory_free_bytes{{{CLUSTER}}}"
    for panel in (
        curves(
            "Core in use",
            [(rate("process_cpu_seconds_total", CLUSTER, "instance"), "{{instance}}")],
            text="A broker uses one core: 1 is all of it.",
            unit="percentunit",
            width=8,
        ),
        curves(
            "Event loop late, 99 % within",
            [
                (
                    "histogram_quantile(0.99, sum by (instance, le) "
                    f"(rate(headrace_event_loop_lag_seconds_bucket{{{CLUSTER}}}[$__rate_interval])))",
                    "{{instance}}",
                )
            ],
            text="While it is late it serves nobody.",
            unit="s",
            width=8,
        ),
        curves(
            "Room on disks",
            [(f"{free} / headrace_log_directory_total_bytes{{{CLUSTER}}}", "{{instance}} {{directory}}")],
            text="Producers are refused below headrace.log.dir.min.free.bytes, mostly a twentieth.",
            unit="percentunit",
            width=8,
            most=1,
        ),
        curves(
            "Leaders",
            [(f"{_REPLICAS}_leadercount{{{CLUSTER}}}", "{{instance}}")],
            text="Partitions led, by broker. `headrace cluster rebalance` evens it out.",
            width=8,
        ),
        curves(
            "Replicas",
            [(f"{_REPLICAS}_partitioncount{{{CLUSTER}}}", "{{instance}}")],
            text="Of partitions, by broker.",
            width=8,
        ),
        curves(
            "In and out of sync",
            [
                (rate(f"{_REPLICAS}_isrshrinks_total", CLUSTER, "job"), "out"),
                (rate(f"{_REPLICAS}_isrexpands_total", CLUSTER, "job"), "in"),
                (rate("kafka_controller_controllerstats_leaderelection_total", CLUSTER, "job"), "elections"),
            ],
            text="Replicas a second that fall out of sync and come back, and leaders elected.",
            unit="ops",
            width=8,
        ),
    ):
        made.with_panel(panel)
    return made
