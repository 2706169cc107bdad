"""`headrace mirror run`."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from headrace.cli.lake_options import master_option
from headrace.cli.lake_run import ending
from headrace.cli.mirror_options import config_option, load_config
from headrace.cli.options import json_option
from headrace.cli.render import print_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.mirror.config import MirrorConfig
    from headrace.spark.mirror.job import Mirror, Totals
    from headrace.spark.mirror.plan import Accept, Seen, Step

_TELL_SECONDS: Final = 10.0


@click.command()
@config_option
@click.option("--once", is_flag=True, help="Mirror what there is now, then end; for schedulers.")
@click.option(
    "--accept-loss",
    "accept",
    type=click.Choice(("earliest", "latest")),
    help="Go on behind records that are gone from the source: with the first that is there, or with what "
    "comes from now on. Counts for this start only.",
)
@master_option
@json_option
def run(config_path: Path, once: bool, accept: Accept | None, master: str | None, as_json: bool) -> None:
    """Mirror topics, every record once.

    Ends cleanly on Ctrl-C or SIGTERM, and goes on where it was at the next start; after a kill as well. A
    topic whose source lost records stands still and says so, while the others go on; with --once, or where no
    topic can go on, that is exit code 1.
    """
    config = load_config(config_path)
    spark = _session(config, master)
    try:
        with ending() as stop:
            from headrace.spark.mirror import job

            told = Teller(quiet=once or as_json)
            totals = job.run(spark, config, once=once, stop=stop, accept=accept, told=told)
    finally:
        spark.stop()
    _print(totals, as_json)


def _session(config: MirrorConfig, master: str | None) -> SparkSession:
    from headrace.spark.mirror.sessions import session_for

    return session_for(config, master=master)


class Teller:
    """A line now and then of how far a long run is."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._at = 0.0

    def __call__(self, mirror: Mirror, seen: Seen, planned: Step) -> None:
        if self._quiet or time.monotonic() < self._at:
            return
        self._at = time.monotonic() + _TELL_SECONDS
        totals = mirror.totals
        behind = sum(
            max(0, seen.view.latest.get(each, at) - at) for each, at in mirror.position.offsets().items()
        )
        click.echo(
            f"{time.strftime('%H:%M:%S')}  {totals.records:,} records in {totals.batches} batches, "
            f"{behind:,} offsets behind, {planned.offsets:,} in this batch",
            err=True,
        )


def _print(totals: Totals, as_json: bool) -> None:
    if as_json:
        print_json(asdict(totals))
        return
    if not totals.records:
        click.echo("nothing new")
    else:
        click.echo(f"{totals.records:,} records in {totals.batches} batches")
    if totals.offsets_carried:
        click.echo(f"{totals.offsets_carried} offsets of groups carried")
    for text in totals.stopped.values():
        click.echo(text)
