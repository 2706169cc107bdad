"""`headrace up`: a local broker, or a local cluster, until Ctrl-C."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.broker import serve
from headrace.client.errors import ClientFailure

if TYPE_CHECKING:
    from headrace.testing.zookeeper import ZooKeeper  # one broker needs none


@click.command()
@click.option("--dir", "directory", type=click.Path(file_okay=False), help="Keep the data here.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9092,
    show_default=True,
    help="Of the first broker; the others count up. 0 picks free ones.",
)
@click.option("--brokers", type=click.IntRange(1), default=1, show_default=True)
@click.option(
    "--zookeeper",
    metavar="HOST:PORT[/CHROOT]",
    help="Use this ZooKeeper. Without it, several brokers get a ZooKeeper of their own, which needs Java.",
)
@click.option(
    "--racks",
    metavar="A,B,C",
    help="Racks that the brokers are dealt to in turn; replicas keep to different ones.",
)
def up(directory: str | None, port: int, brokers: int, zookeeper: str | None, racks: str | None) -> int:
    """Run a local broker, or a cluster of --brokers processes, until Ctrl-C.

    When all serve, it prints one line on standard output: `ready bootstrap=HOST:PORT,...`.
    Without --dir the data is in a temporary directory that is removed at the end.

    In a cluster topics have three replicas by default, of which two must be in sync. A broker that dies is
    started again. Ctrl-C stops one broker after the other; a second Ctrl-C stops all at once.
    """
    with contextlib.ExitStack() as stack:
        if directory is None:
            import tempfile

            directory = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True)
            )
            click.echo(f"data is in {directory}, which is removed at exit; --dir keeps it", err=True)
        if brokers == 1 and zookeeper is None:
            if racks:
                raise click.UsageError("--racks is for more than one broker")
            return serve(_properties(directory, port))
        return _cluster(Path(directory), port, brokers, zookeeper, racks, stack)


def _properties(directory: str, port: int) -> dict[str, str]:
    return {
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": directory,
    }


def _cluster(
    directory: Path,
    port: int,
    brokers: int,
    zookeeper: str | None,
    racks: str | None,
    stack: contextlib.ExitStack,
) -> int:
    from headrace.broker.process.local_cluster import local_ports, local_properties
    from headrace.broker.process.supervisor import BrokerSpec, run_supervisor, write_properties
    from headrace.config.zookeeper_address import parse_zookeeper_connect

    if (directory / "meta.properties").exists():
        raise ClientFailure(
            f"{directory} holds the data of a single broker, which cannot become one of several",
            "give another --dir, or leave --brokers out",
        )
    ports = local_ports(port, brokers)
    companion = None
    if zookeeper is None:
        server = _own_zookeeper(directory / "zookeeper", stack)
        zookeeper, companion = server.connect, lambda: _keep_running(server)
    else:
        parse_zookeeper_connect(zookeeper, "--zookeeper")
    names = [name.strip() for name in racks.split(",")] if racks else []
    specs = [
        BrokerSpec(number, write_properties(directory / f"broker-{number}.properties", properties))
        for number, properties in enumerate(local_properties(directory, ports, zookeeper, names), start=1)
    ]
    return run_supervisor(
        specs,
        on_ready=lambda bootstrap: click.echo(f"ready bootstrap={bootstrap}"),
        say=lambda text: click.echo(text, err=True),
        companion=companion,
    )


def _own_zookeeper(directory: Path, stack: contextlib.ExitStack) -> ZooKeeper:
    from headrace.testing.zookeeper import ZooKeeper

    server = ZooKeeper(directory).start()
    stack.callback(server.stop)
    click.echo(f"ZooKeeper serves at {server.connect}", err=True)
    return server


def _keep_running(server: ZooKeeper) -> None:
    for node in server.nodes:
        if not node.running:
            click.echo("ZooKeeper has ended; it is started again", err=True)
            node.launch()
