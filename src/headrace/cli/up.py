"""`headrace up`: a local broker, or a local cluster, until Ctrl-C."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.broker import say_ready, serve
from headrace.cli.options import pairs
from headrace.cli.up_console import ConsoleProcess, console_process
from headrace.cli.up_secure import Protected, protection
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
@click.option(
    "--metrics",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve /metrics and /healthz on this port; the brokers after the first count up. 0 picks free ones.",
)
@click.option(
    "--console",
    is_flag=False,
    flag_value=9600,
    type=click.IntRange(0, 65535),
    metavar="[PORT]",
    help="Serve the web console too, on port 9600 or this one. 0 picks a free one.",
)
@click.option(
    "--override",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="A property of every broker, by Kafka's name; may be repeated.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="TLS, users with passwords (SCRAM) and ACLs, with certificates and an administrator of its own.",
)
def up(
    directory: str | None,
    port: int,
    brokers: int,
    zookeeper: str | None,
    racks: str | None,
    metrics: int | None,
    console: int | None,
    override: dict[str, str],
    secure: bool,
) -> int:
    """Run a local broker, or a cluster of --brokers processes, until Ctrl-C.

    When all serve, it prints one line on standard output: `ready bootstrap=HOST:PORT,...`.
    Without --dir the data is in a temporary directory that is removed at the end.

    In a cluster topics have three replicas by default, of which two must be in sync. A broker that dies is
    started again. Ctrl-C stops one broker after the other; a second Ctrl-C stops all at once.

    With --secure clients need client.properties, librdkafka.properties or spark.properties from the
    directory. Brokers speak among themselves on ports that follow those for clients.
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
            beside = stack.enter_context(console_process(console))
            return _one(Path(directory), port, _more(1, metrics, override), secure, beside)
        more = _more(brokers, metrics, override)
        return _cluster(Path(directory), port, more, zookeeper, racks, secure, console, stack)


def _more(brokers: int, metrics: int | None, override: dict[str, str]) -> list[dict[str, str]]:
    """What each broker's file says above all else."""
    every = []
    for number in range(brokers):
        port = metrics and metrics + number
        listener = {} if port is None else {"headrace.metrics.listener": f"127.0.0.1:{port}"}
        every.append({**listener, **override})
    return every


def _one(
    directory: Path, port: int, more: list[dict[str, str]], secure: bool, console: ConsoleProcess | None
) -> int:
    properties = _properties(str(directory), port)
    security = protection(directory, [1], port, secure)
    if security is None:
        return serve({**properties, **more[0]}, lambda bootstrap: _ready_with_next_steps(bootstrap, console))
    protected = {**properties, **security.properties[0], **more[0]}
    return security.serve(lambda on_ready: serve(protected, on_ready), console)


def _properties(directory: str, port: int) -> dict[str, str]:
    from headrace.broker.process.local_cluster import LOCAL

    return {
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": directory,
        **LOCAL,
    }


def _cluster(
    directory: Path,
    port: int,
    more: list[dict[str, str]],
    zookeeper: str | None,
    racks: str | None,
    secure: bool,
    console: int | None,
    stack: contextlib.ExitStack,
) -> int:
    from headrace.broker.process.local_cluster import local_ports, local_properties
    from headrace.broker.process.supervisor import BrokerSpec, run_supervisor, write_properties
    from headrace.config.zookeeper_address import parse_zookeeper_connect

    brokers = len(more)
    if (directory / "meta.properties").exists():
        raise ClientFailure(
            f"{directory} holds the data of a single broker, which cannot become one of several",
            "give another --dir, or leave --brokers out",
        )
    security = protection(directory, range(1, brokers + 1), port, secure)
    ports = local_ports(port, brokers) if security is None else security.ports
    companion = None
    to_zookeeper: dict[str, str] = {}
    if zookeeper is None:
        server = _own_zookeeper(directory / "zookeeper", stack, security)
        zookeeper, companion = server.connect, lambda: _keep_running(server)
        if security is not None:
            to_zookeeper = security.zookeeper_properties
    else:
        parse_zookeeper_connect(zookeeper, "--zookeeper")
    names = [name.strip() for name in racks.split(",")] if racks else []
    every = local_properties(directory, ports, zookeeper, names, to_zookeeper)
    if security is not None:
        every = [{**each, **its} for each, its in zip(every, security.properties, strict=True)]
    every = [{**each, **its} for each, its in zip(every, more, strict=True)]
    specs = [
        BrokerSpec(number, write_properties(directory / f"broker-{number}.properties", properties))
        for number, properties in enumerate(every, start=1)
    ]

    def run(on_ready: Callable[[str], None]) -> int:
        return run_supervisor(
            specs, on_ready=on_ready, say=lambda text: click.echo(text, err=True), companion=companion
        )

    # Entered last, so that it is the first to end: its pages would tell of brokers that stop.
    beside = stack.enter_context(console_process(console))
    if security is not None:
        return security.serve(run, beside)
    return run(lambda bootstrap: _ready_with_next_steps(bootstrap, beside))


def _ready_with_next_steps(bootstrap: str, console: ConsoleProcess | None = None) -> None:
    """Beside the line for programs, what a person may do next; not for a file that collects the output."""
    say_ready(bootstrap)
    if console is not None:
        console.start(bootstrap)
    if not sys.stderr.isatty():
        return
    first = bootstrap.partition(",")[0]
    address = "" if first.endswith(":9092") else f" -b {first}"
    for line in (
        "next, in another terminal:",
        f"  echo hello | headrace produce greetings{address}",
        f"  headrace consume greetings{address}",
        f"  headrace cluster status{address}",
    ):
        click.echo(line, err=True)


def _own_zookeeper(directory: Path, stack: contextlib.ExitStack, security: Protected | None) -> ZooKeeper:
    from headrace.testing.zookeeper import ServerTls, ZooKeeper

    tls = None if security is None else ServerTls(*security.prepare_zookeeper())
    server = ZooKeeper(directory, tls=tls).start()
    stack.callback(server.stop)
    click.echo(f"ZooKeeper serves at {server.connect}{' with TLS' if tls else ''}", err=True)
    return server


def _keep_running(server: ZooKeeper) -> None:
    for node in server.nodes:
        if not node.running:
            click.echo("ZooKeeper has ended; it is started again", err=True)
            node.launch()
