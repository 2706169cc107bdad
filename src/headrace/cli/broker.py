"""`headrace broker`: one broker from a file with Kafka's property names."""

from __future__ import annotations

from collections.abc import Callable

import click

from headrace.cli.options import pairs


@click.command()
@click.option(
    "--config",
    "path",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="A server.properties file.",
)
@click.option(
    "--override",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="A property that counts above the file.",
)
def broker(path: str, override: dict[str, str]) -> int:
    """Run one broker until it is told to stop (SIGTERM or Ctrl-C).

    When it serves, it prints one line on standard output: `ready bootstrap=HOST:PORT`.
    """
    from headrace.config.properties_file import read_properties

    return serve({**read_properties(path), **override})


def say_ready(bootstrap: str) -> None:
    click.echo(f"ready bootstrap={bootstrap}")


def serve(properties: dict[str, str], on_ready: Callable[[str], None] = say_ready) -> int:
    from headrace.broker.process.main import ReadyInfo, run_broker
    from headrace.broker.process.supervisor import die_with_parent
    from headrace.config.broker import BrokerConfig

    die_with_parent()
    config = BrokerConfig.parse(properties)
    for warning in config.warnings:
        click.echo(f"warning: {warning}", err=True)

    def ready(info: ReadyInfo) -> None:
        on_ready(info.bootstrap)
        if info.metrics is not None:
            click.echo(f"metrics at {info.metrics}", err=True)

    return run_broker(config, on_ready=ready)
