"""`headrace migrate report`: how far a migration is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from headrace.cli.migrate_cutover import show
from headrace.cli.migrate_options import say_next, state_option
from headrace.cli.options import json_option
from headrace.cli.render import print_json
from headrace.cli.values import counted
from headrace.migration import state_file


@click.command()
@state_option
@json_option
def report(path: Path, as_json: bool) -> None:
    """Show what the file of --state says: the step that is next, or what the cutover has done."""
    migration = state_file.read(path)
    if migration.cutover.report is not None:
        show(migration.cutover.report, as_json)
        return
    if as_json:
        print_json(asdict(migration))
        return
    linked = sum(topic.was_made for topic in migration.topics.values())
    click.echo(f"from {migration.source.bootstrap} to {migration.target.bootstrap}")
    click.echo(f"linked: {linked} of {counted(len(migration.topics), 'topic')}")
    proof = migration.proof
    if proof is None:
        click.echo("compared: not yet")
    else:
        click.echo(
            f"compared: {proof.records:,} records at {proof.at}, {proof.differences or 'no'} differences"
        )
    click.echo(f"groups: {'carried by the links' if migration.carries_groups else 'not carried'}")
    click.echo(f"cutover: {migration.cutover.stage}")
    say_next(migration)
