"""`headrace registry`: a schema registry over a topic of the cluster."""

from __future__ import annotations

import click

from headrace.cli.http_listener import http_config_option, is_installed, listener_of, token_file_option
from headrace.cli.options import bootstrap_of, bootstrap_option, security
from headrace.client.errors import ClientFailure
from headrace.config.http_listener import Words

_DEFAULT_LISTEN = "127.0.0.1:8081"
_WORDS = Words("REGISTRY", "--listen", "--authentication", "--token-file")
_EXTRA = ("fastavro", "jsonschema_rs", "google.protobuf", "starlette", "uvicorn")


@click.command()
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
    "--authentication",
    default="",
    metavar="METHODS",
    help="How clients say who they are: basic (users of the brokers), bearer, mtls; several with commas."
    " Where the brokers have ACLs, they need rights on the topics that subjects belong to. none serves"
    " everybody.",
)
@token_file_option
@http_config_option
@click.option(
    "--topic",
    default="_schemas",
    show_default=True,
    help="Where the schemas are kept. One that Confluent's registry wrote can be taken over.",
)
def registry(
    bootstrap: str,
    listen: str,
    authentication: str,
    token_file: str | None,
    http_config: str | None,
    topic: str,
) -> None:
    """Run a schema registry until it is told to stop (SIGTERM or Ctrl-C).

    It speaks Confluent's REST interface for Avro, JSON Schema and Protobuf. When it serves, it prints one
    line on standard output: `ready url=http://HOST:PORT`. Several may run over one topic, and all of them
    take reads and writes.
    """
    listener = listener_of(_WORDS, listen, authentication, token_file, http_config)
    missing = [name for name in _EXTRA if not is_installed(name)]
    if missing:
        raise ClientFailure(
            f"the registry needs {' and '.join(missing)}",
            "install it with `pip install 'headrace[registry]'`",
        )
    from headrace.broker.runtime.logging import configure
    from headrace.registry.server import run

    configure()
    if listener.is_open:
        click.echo(f"warning: {listener.address} is served to everybody", err=True)
    run(
        bootstrap_of(bootstrap),
        listener,
        topic,
        lambda url: click.echo(f"ready url={url}"),
        security(),
    )
