"""`headrace connect init`: a connector of one's own, with a test that kills it."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.connect_template import FILES


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path("my_connector"))
def init(folder: Path) -> None:
    """Write a connector of one's own to begin with: a class, its entry point, and a test that kills it.

    FOLDER is a new directory, and its name becomes that of the Python package.
    """
    package = folder.name.replace("-", "_")
    if not package.isidentifier():
        raise click.BadParameter(f"{folder.name} is no name for a Python module", param_hint="FOLDER")
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise click.ClickException(f"{folder} exists; name another folder, or edit that one") from None
    for name, text in FILES.items():
        written = text.replace("@PACKAGE@", package).replace("@PROJECT@", package.replace("_", "-"))
        (folder / name.replace("@PACKAGE@", package)).write_text(written, encoding="utf-8")
    click.echo(f"wrote {folder}; try it: cd {folder} && pytest")
    click.echo("pytest is yours to install, and `headrace spark jars` has to have run once")
    click.echo("install it beside every worker: pip install .")
