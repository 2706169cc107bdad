"""`headrace migrate link`: the copies."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.migrate_options import held, say_next, state_option, undo_option, with_both, yes_option
from headrace.cli.options import bootstrap_option, json_option
from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json
from headrace.cli.values import byte_rate, counted
from headrace.migration import ends, linking, order
from headrace.migration.ends import Both
from headrace.migration.state import Migration


@click.command()
@click.option(
    "--throttle",
    callback=byte_rate,
    metavar="BYTES/s",
    help="How fast each broker of the source may be read, such as 50MB: a quota of client id headrace-link.",
)
@click.option("--no-throttle", is_flag=True, help="Take the quota away again.")
@click.option(
    "--until-lag",
    type=click.IntRange(0),
    default=1000,
    show_default=True,
    metavar="RECORDS",
    help="The copies have caught up when they are at most so far behind.",
)
@click.option("--no-wait", is_flag=True, help="Make the copies, and do not wait for them.")
@undo_option
@yes_option
@state_option
@bootstrap_option
@json_option
def link(
    throttle: int | None,
    no_throttle: bool,
    until_lag: int,
    no_wait: bool,
    undo: bool,
    yes: bool,
    path: Path,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Make a copy of each topic, and wait until the copies have caught up.

    The brokers copy by themselves: this command may be ended, and run again to look. --undo deletes the
    copies that this migration has made, and nothing else.
    """
    if throttle is not None and no_throttle:
        raise click.UsageError("--throttle and --no-throttle exclude each other")
    with held(path) as (migration, save), ProgressLine() as line:
        if undo:
            order.check_link_undo(migration)
            _confirm(migration, yes)
            with_both(bootstrap, migration, lambda both: _undo(both, migration, save, line.tell))
            click.echo("no copy is left of this migration; the source is as it was")
            return
        order.check_link(migration)

        async def work(both: Both) -> int:
            await ends.check_topics(both.source, migration)
            if throttle is not None or no_throttle:
                await linking.throttle(both.source, migration, throttle, save)
            await linking.make(both, migration, save, line.tell)
            if no_wait:
                return linking.total_lag(await ends.views(both, migration))
            return await linking.until_close(both, migration, until_lag, line.tell)

        lag = with_both(bootstrap, migration, work)
    if as_json:
        print_json({"topics": list(migration.topics), "lag": None if lag < 0 else lag})
        return
    behind = "an unknown number of records" if lag < 0 else counted(lag, "record")
    click.echo(f"{counted(len(migration.topics), 'topic')} copied, {behind} behind")
    say_next(migration)


def _confirm(migration: Migration, yes: bool) -> None:
    made = [name for name, topic in migration.topics.items() if topic.was_made]
    if made and not yes:
        click.confirm(f"delete at the target, with all records: {', '.join(made)}?", abort=True)


async def _undo(both: Both, migration: Migration, save: linking.Save, tell: linking.Tell) -> None:
    await linking.throttle(both.source, migration, None, save)
    await linking.unmake(both, migration, save, tell)
