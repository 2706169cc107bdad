"""`headrace host`: one broker per core of this machine, from one file."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import click

from headrace.cli.options import pairs


@click.command()
@click.option(
    "--config",
    "path",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="A server.properties file: the first broker's.",
)
@click.option(
    "--brokers",
    default="auto",
    show_default=True,
    metavar="N|auto",
    help="auto is one for each core of this host.",
)
@click.option(
    "--override",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="A property that counts above the file.",
)
@click.option("--print", "print_only", is_flag=True, help="Print the properties of each broker and stop.")
def host(path: str, brokers: str, override: dict[str, str], print_only: bool) -> int:
    """Run one broker per core of this host until SIGTERM or Ctrl-C.

    \b
    The file describes the first broker; the others are derived from it:
      broker.id                   counts up: with broker.id=100 and 4 brokers, 100 to 103
      ports                       of listeners, advertised.listeners and metrics count up too
      log.dirs                    each broker has a folder broker-<id> in each of them
      broker.rack                 this host's name, unless the file says otherwise, so that the
                                  replicas of a partition are never on one host

    Leave room between the ids and the ports of two listeners. zookeeper.connect must be set. A broker that
    dies is started again. When all serve, it prints one line: `ready bootstrap=HOST:PORT,...`.
    """
    from headrace.broker.process.local_cluster import host_properties
    from headrace.broker.process.supervisor import BrokerSpec, run_supervisor, write_properties
    from headrace.config.properties_file import read_properties

    base = {**read_properties(path), **override}
    derived = host_properties(base, _count(brokers), socket.gethostname())
    if print_only:
        for properties in derived:
            click.echo("\n".join(f"{name}={text}" for name, text in properties.items()) + "\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="headrace-host-") as directory:
        specs = [
            BrokerSpec(
                int(properties["broker.id"]),
                write_properties(Path(directory, f"broker-{properties['broker.id']}.properties"), properties),
            )
            for properties in derived
        ]
        return run_supervisor(
            specs,
            on_ready=lambda bootstrap: click.echo(f"ready bootstrap={bootstrap}"),
            say=lambda text: click.echo(text, err=True),
        )


def _count(text: str) -> int:
    if text == "auto":
        return len(os.sched_getaffinity(0))
    if not text.isdecimal() or int(text) < 1:
        raise click.BadParameter(f"{text!r} is neither a number nor auto", param_hint="--brokers")
    return int(text)
