"""The dashboard of one broker: what it does all day, and what it holds."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import BROKER, INSTANCE, JOB, curves, number, page, rate, variable

_SOCKETS = "kafka_server_socket_server_metrics"
_CLEANER = "kafka_log_logcleanermanager"


def broker() -> dashboard.Dashboard:
    made = page(
        "broker",
        "Headrace / Broker",
        "What one broker does all day, and what it holds.",
        [variable(*JOB), variable(*INSTANCE)],
    )
    return _upkeep(_held(_requests(_state(made))))


def _state(made: dashboard.Dashboard) -> dashboard.Dashboard:
    for panel in (
        number(
            "Up for", f"time() - process_start_time_seconds{{{BROKER}}}", text="Since its start.", unit="s"
        ),
        number(
            "Replicas offline",
            f"kafka_server_replicamanager_offlinereplicacount{{{BROKER}}}",
            text="Damaged, missing, or in a directory that failed.",
            bad_above=1,
        ),
        number(
            "Directories offline",
            f"kafka_log_logmanager_offlinelogdirectorycount{{{BROKER}}}",
            text="Log directories that failed.",
            bad_above=1,
        ),
        number(
            "Directories full",
            f"sum(headrace_log_directory_full{{{BROKER}}})",
            text="Producers are refused there.",
            bad_above=1,
        ),
        number(
            "ZooKeeper silent for",
            f"headrace_zookeeper_silence_seconds{{{BROKER}}}",
            text="Below half of zookeeper.session.timeout.ms while nothing is wrong.",
            unit="s",
            bad_above=15,
        ),
        number(
            "Certificate ends in",
            f"min(headrace_tls_certificate_expiry_seconds{{{BROKER}}})",
            text="The first of its listeners' certificates. Nothing here without TLS.",
            unit="s",
        ),
        number(
            "Leaders", f"kafka_server_replicamanager_leadercount{{{BROKER}}}", text="Partitions led here."
        ),
        number(
            "Controller",
            f"kafka_controller_kafkacontroller_activecontrollercount{{{BROKER}}}",
            text="1 if this broker is the active controller.",
        ),
    ):
        made.with_panel(panel)
    return made


def _requests(made: dashboard.Dashboard) -> dashboard.Dashboard:
    made.with_row(dashboard.Row("Requests"))
    for panel in (
        curves(
            "Requests",
            [(rate("kafka_network_requestmetrics_requests_total", BROKER, "request"), "{{request}}")],
            text="Answered a second, by kind.",
            unit="reqps",
            stacked=True,
        ),
        curves(
            "99 % within",
            [(f'kafka_network_requestmetrics_totaltimems{{{BROKER}, quantile="0.99"}}', "{{request}}")],
            text="From the last byte of a request to the first of its answer. A fetch counts its wait.",
            unit="ms",
        ),
        curves(
            "Errors",
            [
                (
                    rate("kafka_network_requestmetrics_errors_total", BROKER, "request, error"),
                    "{{request}} {{error}}",
                )
            ],
            text="Answered a second.",
            unit="ops",
            width=8,
        ),
        curves(
            "Requests that wait",
            [
                (
                    f"kafka_server_delayedoperationpurgatory_purgatorysize{{{BROKER}}}",
                    "{{delayedOperation}}",
                )
            ],
            text="Fetch waits for data, Produce for replicas.",
            width=8,
        ),
        curves(
            "Connections",
            [(f"{_SOCKETS}_connection_count{{{BROKER}}}", "{{listener}}")],
            text="Open now, by listener.",
            width=8,
        ),
    ):
        made.with_panel(panel)
    return made


def _held(made: dashboard.Dashboard) -> dashboard.Dashboard:
    made.with_row(dashboard.Row("The process"))
    lag = f"rate(headrace_event_loop_lag_seconds_bucket{{{BROKER}}}[$__rate_interval])"
    for panel in (
        curves(
            "Core in use",
            [(rate("process_cpu_seconds_total", BROKER, "instance"), "core")],
            text="A broker uses one core: 1 is all of it.",
            unit="percentunit",
            width=8,
        ),
        curves(
            "Event loop late",
            [
                (f"histogram_quantile(0.5, sum by (le) ({lag}))", "half within"),
                (f"histogram_quantile(0.99, sum by (le) ({lag}))", "99 % within"),
            ],
            text="While it is late it serves nobody.",
            unit="s",
            width=8,
        ),
        curves(
            "Memory",
            [(f"process_resident_memory_bytes{{{BROKER}}}", "resident")],
            text="Of the process.",
            unit="bytes",
            width=8,
        ),
        curves(
            "Held for peers",
            [
                (
                    f"headrace_peer_memory_bytes{{{BROKER}}} / headrace_peer_memory_limit_bytes{{{BROKER}}}",
                    "{{kind}}",
                )
            ],
            text="Share of its limit that each kind has used.",
            unit="percentunit",
            width=8,
            most=1,
        ),
        curves(
            "Refused to peers for want of memory",
            [(rate("headrace_peer_memory_refusals_total", BROKER, "kind"), "{{kind}}")],
            text="How often a peer waited, was refused or lost something because of a limit.",
            unit="ops",
            width=8,
        ),
        curves(
            "Descriptors",
            [(f"process_open_fds{{{BROKER}}}", "open"), (f"process_max_fds{{{BROKER}}}", "limit")],
            text="Connections and open segments.",
            width=8,
        ),
    ):
        made.with_panel(panel)
    return made


def _upkeep(made: dashboard.Dashboard) -> dashboard.Dashboard:
    made.with_row(dashboard.Row("Disks"))
    flushes = "kafka_log_logflushstats_logflushrateandtimems"
    for panel in (
        curves(
            "Room",
            [(f"headrace_log_directory_free_bytes{{{BROKER}}}", "{{directory}}")],
            text="Free, by log directory.",
            unit="bytes",
            width=8,
        ),
        curves(
            "A sync takes",
            [
                (
                    f"rate({flushes}_sum{{{BROKER}}}[$__rate_interval])"
                    f" / rate({flushes}_count{{{BROKER}}}[$__rate_interval])",
                    "mean",
                )
            ],
            text="Milliseconds of each sync of a log to disk.",
            unit="ms",
            width=8,
        ),
        curves(
            "Not compacted yet",
            [(f"{_CLEANER}_max_dirty_percent{{{BROKER}}}", "dirtiest log")],
            text="Share of the dirtiest compacted log.",
            unit="percent",
            width=8,
        ),
        curves(
            "Read and written by the cleaner",
            [
                (rate("headrace_cleaner_read_bytes_total", BROKER, "instance"), "read"),
                (rate("headrace_cleaner_written_bytes_total", BROKER, "instance"), "written"),
            ],
            text="Bytes of segments that were cleaned, and what was left of them.",
            unit="Bps",
            width=8,
        ),
        curves(
            "The scrub",
            [(f"headrace_log_scrub_pass_ratio{{{BROKER}}}", "verified in this pass")],
            text="How much of all sealed bytes this pass has verified.",
            unit="percentunit",
            width=8,
            most=1,
        ),
        curves(
            "Damage",
            [
                (f"increase(headrace_log_damage_found_total{{{BROKER}}}[1h])", "found"),
                (f"increase(headrace_log_ranges_mended_total{{{BROKER}}}[1h])", "mended"),
            ],
            text="Damaged places found in the hour before, and ranges put back from other replicas.",
            width=8,
        ),
    ):
        made.with_panel(panel)
    return made
