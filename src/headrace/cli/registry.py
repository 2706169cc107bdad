"""`headrace registry`: a schema registry over a topic of the cluster."""

from __future__ import annotations

from importlib.util import find_spec

import click

from headrace.cli.options import bootstrap_of, bootstrap_option, security
from headrace.client.errors import ClientFailure
from headrace.config.broker import BROKER_PROPERTIES
from headrace.config.http_listener import HttpListener, Words, http_listener
from headrace.config.properties_file import read_properties
from headrace.config.protection import require_known_protection
from headrace.core.errors import ConfigError

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
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Lines user=token, for bearer.",
)
@click.option(
    "--http-config",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Properties for https://: ssl.keystore.*, ssl.truststore.*, named as those of a broker.",
)
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
    listener = _listener(listen, authentication, token_file, http_config)
    missing = [name for name in _EXTRA if not _installed(name)]
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


def _listener(
    listen: str, authentication: str, token_file: str | None, http_config: str | None
) -> HttpListener:
    """Raises ConfigError."""
    methods = tuple(part.lower() for each in authentication.split(",") if (part := each.strip()))
    properties = read_properties(http_config) if http_config is not None else {}
    for name in properties:
        if not name.startswith("ssl."):
            raise ConfigError(f"{http_config}: {name} is not known; it has ssl. properties")
    require_known_protection(properties, BROKER_PROPERTIES)
    try:
        found = http_listener(_WORDS, listen, methods, token_file, properties)
    except ConfigError as error:
        if str(error).startswith(f"{_WORDS.address}: "):
            raise click.BadParameter(f"{listen!r} is not HOST:PORT", param_hint="--listen") from None
        raise
    if found is None:
        raise click.BadParameter("it is empty; write HOST:PORT", param_hint="--listen")
    return found


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it is not there
        return False
