"""`headrace console`: pages to see a cluster."""

from __future__ import annotations

import click

from headrace.cli.http_listener import http_config_option, is_installed, listener_of, token_file_option
from headrace.cli.options import bootstrap_of, bootstrap_option, security
from headrace.cli.service_options import ServiceAddresses, service_options
from headrace.client.errors import ClientFailure
from headrace.config.http_listener import Words

DEFAULT_PORT = 9600
_WORDS = Words("CONSOLE", "--listen", "--authentication", "--token-file")
_EXTRA = ("cel", "jinja2", "starlette", "uvicorn")


@click.command()
@bootstrap_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="On the loopback address. 0 picks a free one.",
)
@click.option(
    "--listen",
    metavar="[https://]HOST:PORT",
    help="Instead of --port. An address that is not the loopback one needs https:// and --authentication.",
)
@click.option(
    "--authentication",
    default="",
    metavar="METHODS",
    help="How viewers say who they are: basic (users of the brokers), bearer, mtls; several with commas."
    " Where the brokers have ACLs, viewers see what they may describe and read. none serves everybody.",
)
@token_file_option
@http_config_option
@click.option(
    "--host-name",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name under which browsers come here, beside that of --listen; may be repeated.",
)
@click.option(
    "--allow-changes",
    is_flag=True,
    help="Pages also change topics and groups, as the viewer, after showing the plan.",
)
@click.option("--no-records", is_flag=True, help="Show no key and no value of any record.")
@click.option(
    "--interval",
    type=click.FloatRange(1),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks at the cluster, which all viewers share. A huge cluster is looked at less often.",
)
@click.option(
    "--certificates",
    default="headrace-audit-certificates",
    show_default=True,
    metavar="TOPIC",
    help="Where the audit keeps its verdicts.",
)
@service_options
def console(
    bootstrap: str,
    port: int,
    listen: str | None,
    authentication: str,
    token_file: str | None,
    http_config: str | None,
    hosts: tuple[str, ...],
    allow_changes: bool,
    no_records: bool,
    interval: float,
    certificates: str,
    addresses: ServiceAddresses,
) -> None:
    """Serve a web console until it is told to stop (SIGTERM or Ctrl-C).

    When it serves, it prints one line on standard output: `ready url=http://HOST:PORT`. It changes nothing in
    the cluster without --allow-changes, and asks it the same whether one person looks or fifty do.
    """
    address = listen or f"127.0.0.1:{port}"
    listener = listener_of(_WORDS, address, authentication, token_file, http_config)
    missing = [name for name in _EXTRA if not is_installed(name)]
    if missing:
        raise ClientFailure(
            f"the console needs {' and '.join(missing)}",
            "install it with `pip install 'headrace[console]'`",
        )
    from headrace.broker.process.supervisor import die_with_parent
    from headrace.broker.runtime.logging import configure
    from headrace.console.server import Settings, run
    from headrace.console.services.following import ANSWER_BYTES, REQUEST_SECONDS

    services = addresses.services_within(REQUEST_SECONDS, ANSWER_BYTES)
    die_with_parent()
    configure()
    if listener.is_open:
        click.echo(f"warning: {listener.address} is served to everybody", err=True)
    run(
        Settings(
            bootstrap_of(bootstrap),
            listener,
            security(),
            interval,
            certificates,
            hosts,
            not no_records,
            allow_changes,
            services.registry,
            services.connect,
        ),
        lambda url: click.echo(f"ready url={url}"),
    )
