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


@click.command()
@config_option
@click.option("--once", is_flag=True, help="Load what there is now, then end; for schedulers.")
@master_option
@json_option
def run(config_path: Path, once: bool, master: str | None, as_json: bool) -> None:
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


def print_done(done: list[Done], as_json: bool) -> None:
    if as_json:
        print_json([{**asdict(each), "rate": each.rate()} for each in done])
        return
    rows = [
        (
            each.topic,
            each.table,
            each.batches[-1].number if each.batches else None,
            sum(batch.records for batch in each.batches),
            None if each.rate() is None else round(each.rate() or 0.0),
        )
        for each in done
    ]
    print_table(("TOPIC", "TABLE", "BATCH", "RECORDS", "RECORDS/S"), rows, empty="no topic matches")
