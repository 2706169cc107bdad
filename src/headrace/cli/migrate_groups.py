"""`headrace migrate groups`: committed offsets."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.migrate_options import held, say_next, state_option, undo_option, with_both
from headrace.cli.options import bootstrap_option, json_option
from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json, print_table
from headrace.migration import carrying, draining, ends, order
from headrace.migration.carrying import Carried
from headrace.migration.ends import Both
from headrace.migration.state import Stage


@click.command()
@click.option(
    "--groups",
    "patterns",
    multiple=True,
    metavar="PATTERN",
    help="Other groups than the plan names; may be repeated.",
)
@undo_option
@state_option
@bootstrap_option
@json_option
def groups(patterns: tuple[str, ...], undo: bool, path: Path, bootstrap: str, as_json: bool) -> None:
    """Carry committed offsets to the target, and let the links keep them up to date.

    Offsets are the same numbers on both sides. A group that has members at the target is left as it is.
    After the cutover this carries once more what was committed at the source meanwhile, and only forward.
    --undo removes the offsets of these topics again.
    """
    if any("," in each for each in patterns):
        raise click.UsageError("a pattern of groups has no comma: write ? for it, or repeat --groups")
    with held(path) as (migration, save), ProgressLine() as line:
        if undo:
            order.check_groups_undo(migration)
            with_both(bootstrap, migration, lambda both: carrying.undo(both, migration, save, line.tell))
            click.echo("offsets are carried no more")
            return
        if patterns:
            migration.group_patterns = [each for each in patterns if each]
        order.check_groups(migration)

        async def work(both: Both) -> list[Carried]:
            if migration.cutover.stage is Stage.DONE:
                limits = draining.unlisted(migration.cutover.ends)
                return await carrying.carry(both, migration, limits, only_forward=True)
            await ends.check_topics(both.source, migration)
            await carrying.begin(both, migration, save)
            return await carrying.carry(both, migration, await ends.ends(both.target, migration.topics))

        found = with_both(bootstrap, migration, work)
    if as_json:
        print_json([{**each._asdict(), "outcome": each.words} for each in found])
        return
    print_table(
        ("GROUP", "AT THE SOURCE", "PARTITIONS", "BEHIND", "OUTCOME"),
        [(each.group_id, each.state_there, each.partitions, each.behind, each.words) for each in found],
        empty="no group of the source has committed offsets of these topics",
    )
    say_next(migration)
