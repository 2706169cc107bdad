"""`headrace registry`: a schema registry over a topic of the cluster."""

from __future__ import annotations

from importlib.util import find_spec

import click

from headrace.cli.options import bootstrap_of, bootstrap_option, security
from headrace.client.errors import ClientFailure

_DEFAULT_LISTEN = "127.0.0.1:8081"
_EXTRA = ("fastavro", "jsonschema_rs", "google.protobuf", "starlette", "uvicorn")


@click.command()
@bootstrap_option
@click.option(
    "--listen",
    default=_DEFAULT_LISTEN,
    show_default=True,
    metavar="HOST:PORT",
    help="Where to serve HTTP. Port 0 picks a free one.",
)
@click.option(
    "--topic",
    default="_schemas",
    show_default=True,
    help="Where the schemas are kept. One that Confluent's registry wrote can be taken over.",
)
def registry(bootstrap: str, listen: str, topic: str) -> None:
    """Run a schema registry until it is told to stop (SIGTERM or Ctrl-C).

    It speaks Confluent's REST interface for Avro, JSON Schema and Protobuf. When it serves, it prints one
    line on standard output: `ready url=http://HOST:PORT`. Several may run over one topic, and all of them
    take reads and writes.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{listen!r} is not HOST:PORT", param_hint="--listen")
    missing = [name for name in _EXTRA if not _installed(name)]
    if missing:
        raise ClientFailure(
            f"the registry needs {' and '.join(missing)}",
            "install it with `pip install 'headrace[registry]'`",
        )
    from headrace.broker.runtime.logging import configure
    from headrace.registry.server import run

    configure()
    run(
        bootstrap_of(bootstrap),
        host.removeprefix("[").removesuffix("]"),
        int(port),
        topic,
        lambda url: click.echo(f"ready url={url}"),
        security(),
    )


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it is not there
        return False
