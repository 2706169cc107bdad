"""`headrace connect`: a worker of Kafka Connect's kind, and commands for people who use one."""

from __future__ import annotations

import click

from headrace.cli.http_listener import http_config_option, is_installed, listener_of, token_file_option
from headrace.cli.lazy_group import LazyGroup
from headrace.cli.options import bootstrap_of, bootstrap_option, client_properties, security
from headrace.client.errors import ClientFailure
from headrace.config.http_listener import Words

_DEFAULT_LISTEN = "127.0.0.1:8083"
_WORDS = Words("CONNECT", "--listen", "--authentication", "--token-file")
_EXTRA = ("pyspark", "pyarrow", "starlette", "uvicorn")
_COMMANDS = {
    "list": ("headrace.cli.connect_look:list_connectors", "List connectors and how they are."),
    "status": ("headrace.cli.connect_look:status", "Show one connector, its tasks, and why they failed."),
    "plugins": ("headrace.cli.connect_look:plugins", "List the kinds of connectors, or the settings of one."),
    "create": ("headrace.cli.connect_change:create", "Create connectors from files, or change them."),
    "pause": ("headrace.cli.connect_change:pause", "Pause connectors."),
    "resume": ("headrace.cli.connect_change:resume", "Resume connectors that are paused or stopped."),
    "stop": ("headrace.cli.connect_change:stop", "Stop connectors; their offsets can be changed then."),
    "restart": ("headrace.cli.connect_change:restart", "Start connectors anew."),
    "delete": ("headrace.cli.connect_change:delete", "Delete connectors; topics and data stay."),
    "offsets": ("headrace.cli.connect_offsets:offsets", "Show, change and reset how far a connector is."),
    "init": ("headrace.cli.connect_init:init", "Write a connector of one's own to begin with."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS, invoke_without_command=True)
@bootstrap_option
@click.option(
    "--listen",
    default=_DEFAULT_LISTEN,
    show_default=True,
    metavar="[https://]HOST:PORT",
    help="Where to serve HTTP. Port 0 picks a free one. An address that is not the loopback one needs"
    " https:// and --authentication.",
)
@click.option(
    "--group", default="connect-cluster", show_default=True, help="Workers of one group share work."
)
@click.option("--master", metavar="URL", help="Spark's master, as in local[4] or spark://host:7077.")
@click.option(
    "--jobs", type=click.IntRange(1), default=4, show_default=True, help="How many Spark jobs run at a time."
)
@click.option("--config-topic", default="connect-configs", show_default=True)
@click.option("--status-topic", default="connect-status", show_default=True)
@click.option("--offset-topic", default="connect-offsets", show_default=True)
@click.option(
    "--session-timeout-ms",
    type=click.IntRange(1000),
    default=6000,
    show_default=True,
    help="After so long without a word from a worker, others take over its connectors. Brokers take no less"
    " than their group.min.session.timeout.ms.",
)
@click.option(
    "--authentication",
    default="",
    metavar="METHODS",
    help="How clients say who they are: basic (users of the brokers), bearer, mtls; several with commas."
    " Where the brokers have ACLs, changes need ALTER on the cluster. none serves everybody.",
)
@token_file_option
@http_config_option
@click.option(
    "--advertise", default="", metavar="HOST:PORT", help="Under which name statuses speak of this worker."
)
@click.option(
    "--spark",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the Spark session, as spark.driver.memory=2g. Can be repeated.",
)
@click.pass_context
def connect(context: click.Context, /, bootstrap: str, **options: object) -> None:
    """Run a worker until it is told to stop (SIGTERM or Ctrl-C), or talk to one.

    Without a command it is a worker. It speaks Kafka Connect's REST interface; connectors run on Spark. When
    it serves, it prints one line on standard output: `ready url=http://HOST:PORT`. Workers of one --group
    share the connectors, and take over those of a worker that dies. Any of them takes all requests.
    """
    if context.invoked_subcommand is not None:
        return
    missing = [name for name in _EXTRA if not is_installed(name)]
    if missing:
        raise ClientFailure(
            f"a worker needs {' and '.join(missing)}",
            "install it with `pip install 'headrace[connect]'`",
        )
    from headrace.cli.connect_worker import run_worker

    listener = listener_of(
        _WORDS,
        str(options["listen"]),
        str(options["authentication"]),
        _text(options["token_file"]),
        _text(options["http_config"]),
    )
    if listener.is_open:
        click.echo(f"warning: {listener.address} is served to everybody", err=True)
    run_worker(
        {**client_properties(context), "bootstrap.servers": bootstrap_of(bootstrap)},
        listener,
        security(),
        options,
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
