"""`headrace table run` and `headrace table rebuild`."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.lake_options import master_option, spark_for
from headrace.cli.lake_progress import showing
from headrace.cli.lake_run import ending, print_done, refuse_dead_letters, strict_option
from headrace.cli.options import json_option
from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json, print_table
from headrace.cli.table_options import config_option, load_config


@click.command()
@config_option
@click.option("--once", is_flag=True, help="Up to where the topics end now, then end; for schedulers.")
@strict_option
@master_option
@json_option
def run(config_path: Path, once: bool, strict: bool, master: str | None, as_json: bool) -> None:
    """Keep tables up with their topics: the latest value of each key, without those that were deleted.

    Ends cleanly on Ctrl-C or SIGTERM, and goes on where it was at the next start; after a kill as well. With
    --once it fails (exit code 1) if a table could not be kept up, or a topic does not exist.
    """
    config = load_config(config_path)
    # After the session, which puts a handler of its own for Ctrl-C: it would cancel the batch that runs.
    with spark_for(config.store, master) as spark, ending() as stop, showing(once, "table") as told:
        from headrace.spark.table import job

        done = job.run(spark, config, once=once, stop=stop, told=told)
    print_done(done, as_json, "table")
    if strict:
        refuse_dead_letters(done)


@click.command()
@click.argument("names", metavar="[TABLE...]", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every table of the configuration.")
@config_option
@master_option
@json_option
def rebuild(
    names: tuple[str, ...], every: bool, config_path: Path, master: str | None, as_json: bool
) -> None:
    """Make tables anew from the beginning of their topics, and then what is derived from them.

    Readers see the old table until the new one is whole. No `headrace table run` may go on meanwhile; the
    next one goes on where the rebuild ended.
    """
    config = load_config(config_path)
    if bool(names) == every:
        raise click.UsageError("name the tables to rebuild, or say --all")
    wanted = [config.table(name).name for name in names] or [spec.name for spec in config.tables]
    from headrace.spark.table import rebuild as rebuilding

    done = []
    with spark_for(config.store, master) as spark, ProgressLine() as line:
        for name in wanted:
            done.append(rebuilding.rebuild(spark, config, name, told=line.tell))
    if as_json:
        print_json([each._asdict() for each in done])
        return
    rows = [(each.table, each.rows, each.dead_letters, sum(each.ends.values()), each.step) for each in done]
    print_table(("TABLE", "ROWS", "DEAD-KEYS", "OFFSETS", "STEP"), rows)
