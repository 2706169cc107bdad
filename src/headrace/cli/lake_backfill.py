"""`headrace lake backfill`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.config_file import brokers_of
from headrace.cli.lake_options import config_option, load_config, master_option, spark_for
from headrace.cli.lake_run import ending
from headrace.cli.options import json_option
from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json
from headrace.cli.values import counted

if TYPE_CHECKING:
    from headrace.spark.lake.backfill.job import Backfilled

_MB = 1_000_000


@click.command()
@click.argument("topic")
@click.option("--tier", metavar="BUCKET_URL", help="The history is in an object store: s3://BUCKET/PREFIX.")
@click.option("--endpoint", metavar="URL", help="With --tier: of a store that is not Amazon's.")
@click.option("--region", metavar="NAME", help="With --tier: of an S3 bucket; by default AWS_REGION.")
@click.option("--cluster-id", metavar="ID", help="With --tier: by default that of the brokers.")
@click.option("--topic-id", metavar="ID", help="With --tier: by default as the brokers know the topic.")
@click.option(
    "--files",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="The history is in a log directory of a broker, or in a partition's folder. May be repeated.",
)
@click.option(
    "--leave-rest",
    is_flag=True,
    help="Load nothing more of a backfill that was cut off: `lake run` loads the rest from the brokers.",
)
@config_option
@master_option
@json_option
def backfill(
    topic: str,
    tier: str | None,
    endpoint: str | None,
    region: str | None,
    cluster_id: str | None,
    topic_id: str | None,
    files: tuple[str, ...],
    leave_rest: bool,
    config_path: Path,
    master: str | None,
    as_json: bool,
) -> None:
    """Load a topic's history into its table, past the brokers.

    Before the first `headrace lake run` of the topic, which then goes on where this ended. Tasks of Spark
    read sealed segments and write Parquet files, which the table gets in commits of several tasks. Every
    committed record is there once, however often this is killed and run again.

    For tables of values that are not decoded (format = "bytes"), in a directory that all of Spark's machines
    have.
    """
    if bool(files) + (tier is not None) + leave_rest != 1:
        raise click.UsageError(
            "say where the history is: --tier s3://BUCKET/PREFIX, or --files DIR, a log directory of a "
            "broker; or --leave-rest of a backfill that was cut off"
        )
    config = load_config(config_path)
    from headrace.spark.lake.backfill import job
    from headrace.spark.lake.backfill.places import place_of

    place = None
    if not leave_rest:
        with brokers_of(config_path):
            place = place_of(
                config,
                topic,
                files=files,
                tier=tier,
                cluster_id=cluster_id,
                topic_id=topic_id,
                endpoint=endpoint,
                region=region,
            )
    with spark_for(config, master) as spark, ending() as stop, _showing() as told:
        found = job.of_topic(spark, config, topic)
        done = found.leave_rest() if place is None else found.run(place, stop, told)
    if as_json:
        print_json(asdict(done))
    else:
        click.echo(summary(done))
    if not done.complete:
        raise click.exceptions.Exit(1)


def summary(done: Backfilled) -> str:
    """What a run did, and what comes next."""
    if not done.complete:
        return (
            f"{_loaded(done)}, and was ended before all was there: run it again, and it goes on where it was"
        )
    ends = ", ".join(f"{partition}: {end}" for partition, end in sorted(done.ends.items()))
    said = _loaded(done) if done.steps else f"{done.topic}: nothing more to load into {done.table}"
    following = f"goes on at {ends}" if ends else "begins at the start"
    return f"{said}\n`headrace lake run` {following}"


def _loaded(done: Backfilled) -> str:
    rate = f", {done.rows / done.seconds:,.0f} a second" if done.seconds else ""
    return (
        f"{done.topic}: {counted(done.rows, 'record')} of {done.read_bytes / _MB:,.1f} MB loaded into "
        f"{done.table} in {done.seconds:,.1f} s{rate}; {counted(done.files, 'file')} of "
        f"{done.written_bytes / _MB:,.1f} MB in {counted(done.steps, 'commit')}"
    )


def sentence(done: Backfilled) -> str:
    """How far it is: in bytes of segments, which are known before."""
    share = done.read_bytes * 100 // max(1, done.total_bytes)
    return (
        f"{done.topic}: {done.read_bytes / _MB:,.0f} of {done.total_bytes / _MB:,.0f} MB read ({share} %), "
        f"{counted(done.rows, 'record')} in {done.table}"
    )


@contextmanager
def _showing() -> Iterator[Callable[[Backfilled], None]]:
    if not sys.stderr.isatty():
        with ProgressLine() as line:
            yield lambda done: line.tell(sentence(done))
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns: list[Any] = [BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True)) as view:
        shown = view.add_task("", total=None)
        yield lambda done: view.update(
            shown, description=sentence(done), completed=done.read_bytes, total=done.total_bytes or None
        )
