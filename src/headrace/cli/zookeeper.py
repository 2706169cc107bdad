"""`headrace zookeeper jars`: a server for clusters on a laptop and in tests."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.jars import bring
from headrace.cli.options import json_option
from headrace.testing.zookeeper_jars import JARS


@click.group()
def zookeeper() -> None:
    """Make this machine ready to run clusters of several brokers."""


@zookeeper.command()
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    help=f"Where the jars are. Default: {JARS.variable}, or ~/.cache/headrace/zookeeper-jars.",
)
@json_option
def jars(directory: Path | None, as_json: bool) -> None:
    """Bring the jars of a ZooKeeper server, for `headrace up --brokers 3` and clusters in tests.

    Maven fetches them, with the mirrors and proxies of your own settings.xml. They need Java 11 or later, and
    no PySpark. For production install ZooKeeper as its own documentation says, and give its address.
    """
    bring(JARS, directory, as_json, finder="commands and tests")
