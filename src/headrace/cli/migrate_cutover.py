"""`headrace migrate cutover`: the last step."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from headrace.cli.migrate_options import held, state_option, undo_option, with_both, yes_option
from headrace.cli.options import bootstrap_option, json_option
from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json
from headrace.cli.values import counted
from headrace.client.errors import ClientFailure
from headrace.migration import cutover as last_step
from headrace.migration import order, report
from headrace.migration.cutover import Clocks, How
from headrace.migration.draining import Patience
from headrace.migration.state import Migration

STILL_SECONDS = 5.0
STILL_FENCED_SECONDS = 0.5


@click.command()
@click.option(
    "--fence-with",
    type=click.Choice(["acl"]),
    help="Keep producers out at the source: acl adds rules there that deny writing to these topics. Without"
    " it, stop the producers yourself.",
)
@click.option(
    "--everybody-may-read",
    is_flag=True,
    help="With acl, for sources with allow.everyone.if.no.acl.found=true: topics without any rule get one"
    " that allows all the rest.",
)
@click.option(
    "--still",
    type=click.FloatRange(0.0),
    metavar="SECONDS",
    help="How long no end at the source may move, before it counts as at rest.  [default: 5, with"
    " --fence-with 0.5]",
)
@click.option(
    "--transaction-wait",
    type=click.FloatRange(0.0),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How long open transactions may take to end; then they are aborted at the source.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.0),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the source may take to come to rest.",
)
@click.option("--unproven", is_flag=True, help="Also if `prove` was not run.")
@click.option("--without-groups", is_flag=True, help="Carry no offsets.")
@undo_option
@yes_option
@state_option
@bootstrap_option
@json_option
def cutover(
    fence_with: str | None,
    everybody_may_read: bool,
    still: float | None,
    transaction_wait: float,
    timeout: float,
    unproven: bool,
    without_groups: bool,
    undo: bool,
    yes: bool,
    path: Path,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Wait for the last records and offsets of the source, then take the topics over.

    Until the promotion begins it can be ended, run again, and taken back with --undo. After it there is no
    way back but another migration. Exit code 1 if records came to the source too late to be here.
    """
    with held(path) as (migration, save), ProgressLine() as line:
        if undo:
            order.check_cutover_undo(migration)
            with_both(bootstrap, migration, lambda both: last_step.undo(both, migration, save))
            click.echo("producers may write at the source again, as far as this migration had forbidden it")
            return
        order.check_cutover(migration, is_unproven_allowed=unproven, needs_groups=not without_groups)
        if not migration.is_beyond_return and not yes:
            click.echo(_plan(migration, fence_with), err=True)
            click.confirm("take these topics over?", abort=True, err=True)
        is_fenced = fence_with is not None or bool(migration.cutover.fence)
        how = How(
            fence_with is not None,
            everybody_may_read,
            not without_groups,
            Patience(
                still if still is not None else STILL_FENCED_SECONDS if is_fenced else STILL_SECONDS,
                transaction_wait,
                timeout,
            ),
        )
        clocks = Clocks(time.monotonic, lambda: time.time_ns() // 1_000_000)
        try:
            done = with_both(
                bootstrap,
                migration,
                lambda both: last_step.cut_over(both, migration, how, save, line.tell, clocks),
            )
        except KeyboardInterrupt:
            click.echo(_ended(migration), err=True)
            raise
    show(done, as_json)


def _ended(migration: Migration) -> str:
    """What whoever has pressed Ctrl-C leaves behind: producers may be shut out by now."""
    again = "ended: `headrace migrate cutover` goes on with it"
    return again if migration.is_beyond_return else f"{again}; --undo takes back what was begun"


def show(done: dict[str, Any], as_json: bool) -> None:
    """Raises ClientFailure where something is missing here."""
    if as_json:
        print_json(done)
    else:
        for text in report.lines(done):
            click.echo(text)
    if not report.is_clean(done):
        raise ClientFailure("not everything that the source has is here, see above")


def _plan(migration: Migration, fence_with: str | None) -> str:
    topics = ", ".join(migration.topics)
    if fence_with is None:
        first = "wait until nobody writes at the source: stop the producers now"
    else:
        first = f"add rules at {migration.source.bootstrap} that deny everybody to write"
    return "\n".join(
        (
            f"{counted(len(migration.topics), 'topic')}: {topics}",
            f"1. {first}",
            "2. let open transactions end, or abort them at the source; wait until the copies are whole",
            "3. carry committed offsets once more",
            "4. promote the copies: from here there is no way back",
        )
    )
