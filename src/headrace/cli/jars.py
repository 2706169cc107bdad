"""What `headrace spark jars` and `headrace zookeeper jars` do."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json
from headrace.jars.jar_set import JarSet


def bring(jars: JarSet, directory: Path | None, as_json: bool, *, finder: str) -> None:
    """`finder`: who looks for them, in the plural."""
    where = directory or jars.default_directory()
    lacking = jars.missing(where)
    with ProgressLine() as line:
        if lacking:
            line.tell(f"Maven brings {len(lacking)} jars to {where}")
        files = jars.fetch(where)
    if as_json:
        print_json(
            {"directory": where.absolute(), "brought": len(lacking), "jars": [path.name for path in files]}
        )
        return
    for path in files:
        click.echo(path)
    if where.absolute() != jars.default_directory().absolute():
        click.echo(f"{finder} find them with: export {jars.variable}={where.absolute()}", err=True)
