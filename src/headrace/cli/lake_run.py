"""`headrace lake run`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.lake_options import config_option, load_config, master_option, spark_for
from headrace.cli.lake_progress import showing
from headrace.cli.options import json_option
from headrace.cli.render import print_json, print_table

if TYPE_CHECKING:
    from headrace.spark.lake.batches import Done


strict_option = click.option(
    "--fail-on-dead-letters",
    "strict",
    is_flag=True,
    help="Exit with 1 if a record could not be decoded. All others are loaded first.",
)


@click.command()
@config_option
@click.option("--once", is_flag=True, help="Load what there is now, then end; for schedulers.")
@strict_option
@master_option
@json_option
def run(config_path: Path, once: bool, strict: bool, master: str | None, as_json: bool) -> None:
    """Load topics into tables, every record once.

    Ends cleanly on Ctrl-C or SIGTERM, and goes on where it was at the next start; after a kill as well. With
    --once it fails (exit code 1) if a topic could not be loaded, or is named and does not exist.
    """
    config = load_config(config_path)
    # After the session, which puts a handler of its own for Ctrl-C: it would cancel the batch that runs.
    with spark_for(config, master) as spark, ending() as stop, showing(once) as told:
        from headrace.spark.lake import job

        done = job.run(spark, config, once=once, stop=stop, told=told)
    print_done(done, as_json)
    if strict:
        refuse_dead_letters(done)


@contextmanager
def ending() -> Iterator[threading.Event]:
    """Set by the signals that ask a process to end. A second one is not waited for."""
    stop = threading.Event()

    def ask(number: int, _frame: object) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def print_done(done: list[Done], as_json: bool, part: str = "lake") -> None:
    """What this run has done, and for dead letters why, and what to do."""
    if as_json:
        print_json([{**asdict(each), "rate": each.rate()} for each in done])
        return
    if done and not any(each.new.records for each in done):
        click.echo(f"nothing new in {', '.join(each.topic for each in done)}")
        return
    rows = [
        (
            each.topic,
            each.table,
            each.batches[-1].number if each.batches else None,
            each.new.rows,
            each.new.dead_letters,
            None if each.rate() is None else round(each.rate() or 0.0),
        )
        for each in done
    ]
    columns = ("TOPIC", "TABLE", "BATCH", "NEW-ROWS", "DEAD-LETTERS", "RECORDS/S")
    print_table(columns, rows, empty="no topic matches")
    for each in done:
        if each.new.dead_letters:
            click.echo(_letters(each, part))


def _letters(done: Done, part: str) -> str:
    count = done.new.dead_letters
    said = f"{done.topic}: {count:,} dead letter{'s' if count != 1 else ''}"
    if done.new.commonest_reason:
        said += f", most often because: {done.new.commonest_reason}"
    again = f"headrace lake replay {done.topic}" if part == "lake" else f"headrace table rebuild {done.table}"
    return f"{said}\n  after a fix: {again}"


def refuse_dead_letters(done: list[Done]) -> None:
    count = sum(each.new.dead_letters for each in done)
    if count:
        raise click.ClickException(f"{count:,} dead letter{'s' if count != 1 else ''}, and none are allowed")
