"""`headrace lake replay` and `headrace lake maintain`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.lake_options import config_option, load_config, master_option, spark_for
from headrace.cli.options import json_option
from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json, print_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.lake.config import LakeConfig
    from headrace.spark.lake.plan import Route


@click.command()
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@config_option
@master_option
@json_option
def replay(topics: tuple[str, ...], config_path: Path, master: str | None, as_json: bool) -> None:
    """Try the dead letters of topics again, after a fix.

    What can be decoded by the configuration as it is now goes into the topic's table and leaves the dead
    letters. It may be repeated and cut off at any time: no record gets into the table twice. A running
    `headrace lake run` need not stop, but decodes by what it read at its start.
    """
    config = load_config(config_path)
    wanted = [_route(config, topic) for topic in topics]
    from headrace.spark.lake.dead_letters import Replayed
    from headrace.spark.lake.dead_letters import replay as again

    found: dict[str, Replayed] = {}
    with spark_for(config, master) as spark, ProgressLine() as line:
        for route in wanted:
            line.tell(f"replaying {route.dead_letters} into {route.table}")
            found[route.topic] = again(spark, config, route)
    if as_json:
        print_json([{"topic": topic, **each._asdict()} for topic, each in found.items()])
        return
    for topic, each in found.items():
        click.echo(f"{topic}: {each.delivered:,} delivered, {each.left:,} left")
        for reason, count in each.reasons.items():
            click.echo(f"  {count:,} x {reason}")


@click.command()
@click.argument("topics", metavar="[TOPIC...]", nargs=-1)
@config_option
@master_option
@json_option
def maintain(topics: tuple[str, ...], config_path: Path, master: str | None, as_json: bool) -> None:
    """Put small files together and remove what no version needs any more.

    Goes by [maintenance] in the configuration. A running `headrace lake run` need not stop; it does the same
    by itself where that section is there.
    """
    config = load_config(config_path)
    from headrace.spark.lake.maintenance import maintain as keep_up

    with spark_for(config, master) as spark, ProgressLine() as line:
        routes = [_route(config, topic) for topic in topics] or _all_routes(spark, config)
        done = keep_up(
            spark, config, routes, told=lambda each: line.tell(f"{each.table}: {each.seconds:.1f} s")
        )
    rows = [
        (
            each.table,
            None if each.upkeep is None else each.upkeep.files_before,
            None if each.upkeep is None else each.upkeep.files_after,
            None if each.upkeep is None else each.upkeep.removed,
            round(each.seconds, 1),
            each.error,
        )
        for each in done
    ]
    names = ("table", "files_before", "files_after", "removed", "seconds", "error")
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        headings = ("TABLE", "FILES-BEFORE", "FILES-AFTER", "REMOVED", "SECONDS", "ERROR")
        print_table(headings, rows, empty="no table has been made yet")
    if any(each.error for each in done):
        raise click.ClickException("not every table could be maintained; the last column says why")


def _route(config: LakeConfig, topic: str) -> Route:
    from headrace.spark.lake.plan import route

    found = route(config, topic)
    if found is None:
        raise click.ClickException(
            f"the configuration has no rule for topic {topic}; add it below [[topics]]"
        )
    return found


def _all_routes(spark: SparkSession, config: LakeConfig) -> list[Route]:
    from headrace.spark.lake import broker
    from headrace.spark.lake.plan import routes

    return routes(config, broker.topics(spark, config.kafka))
