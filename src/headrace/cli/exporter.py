"""`headrace exporter`: lags of groups, and windows of the audit, for Prometheus."""

from __future__ import annotations

import click

from headrace.cli.http_listener import listener_of
from headrace.cli.options import bootstrap_of, bootstrap_option, security
from headrace.config.http_listener import Words

_WORDS = Words("EXPORTER", "--listen", "--authentication", "--token-file")


@click.command()
@bootstrap_option
@click.option(
    "--listen",
    default="127.0.0.1:9308",
    show_default=True,
    metavar="HOST:PORT",
    help="Where to serve /metrics, by HTTP. Port 0 picks a free one. An address that is not the loopback one"
    " needs --authentication none.",
)
@click.option(
    "--authentication",
    type=click.Choice(["none"]),
    help="none serves everybody who reaches the address: names of groups and topics, and their offsets.",
)
@click.option(
    "--interval",
    type=click.FloatRange(1),
    default=15.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks at the cluster, however often it is scraped.",
)
@click.option(
    "--certificates",
    default="headrace-audit-certificates",
    show_default=True,
    metavar="TOPIC",
    help="Where the audit keeps its verdicts.",
)
def exporter(
    bootstrap: str, listen: str, authentication: str | None, interval: float, certificates: str
) -> None:
    """Serve metrics until it is told to stop (SIGTERM or Ctrl-C).

    When it serves, it prints one line on standard output: `ready url=http://HOST:PORT`. It tells
    kafka_consumergroup_lag and kafka_consumergroup_lag_seconds of each group and partition, and
    headrace_audit_windows by topic and state. What is not known has no series.
    """
    if listen.lower().startswith("https://"):
        raise click.BadParameter("it serves HTTP; for HTTPS put a proxy before it", param_hint="--listen")
    listener = listener_of(_WORDS, listen, authentication or "", None, None)
    from headrace.broker.runtime.logging import configure
    from headrace.exporter.server import Settings, run

    configure()
    if listener.is_open:
        click.echo(f"warning: {listener.address} is served to everybody", err=True)
    run(
        Settings(bootstrap_of(bootstrap), listener, security(), interval, certificates),
        lambda url: click.echo(f"ready url={url}"),
    )
