"""`headrace spark jars` and `headrace spark doctor`. Neither needs PySpark to be installed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from headrace.cli.jars import bring
from headrace.cli.lazy_group import FAILED
from headrace.cli.options import client_properties, command_config, command_config_option, json_option
from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json
from headrace.spark import class_archive
from headrace.spark import doctor as surgery
from headrace.spark import jars as jar_files
from headrace.spark.doctor import Finding

_directory_option = click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    help=f"Where the jars are. Default: {jar_files.DIRECTORY_VARIABLE}, or ~/.cache/headrace/spark-jars.",
)


@click.group()
def spark() -> None:
    """Make this machine ready for the pipeline on Spark; check it."""


@spark.command()
@_directory_option
@json_option
def jars(directory: Path | None, as_json: bool) -> None:
    """Bring the jars that a session needs beside PySpark's own.

    Maven fetches them, with the mirrors and proxies of your own settings.xml. What is there already is kept.
    """
    bring(jar_files.JARS, directory, as_json, finder="sessions")


@spark.command()
@_directory_option
@json_option
def archive(directory: Path | None, as_json: bool) -> None:
    """Make an archive of the classes that Spark loads: from then on each Spark here starts a third sooner.

    It takes a minute, once for a Java and a PySpark, and 190 MB beside the jars. Sessions find it there;
    deleting the file undoes it.
    """
    there = class_archive.path(directory).exists()
    with ProgressLine() as line:
        if not there:
            line.tell("a Spark runs, and writes down which classes it has loaded: about a minute")
        made = class_archive.make(directory)
    if made is None:
        raise class_archive.NoArchive("another process makes it at this moment. Nothing is left to do.")
    if as_json:
        print_json({"archive": made, "made": not there, "bytes": made.stat().st_size})
    else:
        click.echo(made)


@spark.command()
@_directory_option
@click.option(
    "-b",
    "--bootstrap",
    envvar="HEADRACE_BOOTSTRAP",
    show_envvar=True,
    metavar="HOST:PORT",
    help="Also write a topic there, read it, and make a table of each format from it.",
)
@command_config_option
@json_option
@click.pass_context
def doctor(context: click.Context, directory: Path | None, bootstrap: str | None, as_json: bool) -> None:
    """Check Java, Python, packages and jars, and say what to do about what is wrong.

    Ends with status 1 if something is wrong. The topic of the round trip is deleted afterwards.
    """
    brokers = bootstrap or client_properties(context).get("bootstrap.servers", "").strip() or None
    findings = surgery.examine(
        jar_directory=directory, bootstrap=brokers, client_file=command_config(context)
    )
    ok = _print_document(findings) if as_json else _print_lines(findings)
    if not ok:
        context.exit(FAILED)


def _print_document(findings: Iterable[Finding]) -> bool:
    listed = list(findings)
    ok = all(finding.ok for finding in listed)
    print_json({"ok": ok, "findings": [finding._asdict() for finding in listed]})
    return ok


def _print_lines(findings: Iterable[Finding]) -> bool:
    wrong = 0
    for finding in findings:
        click.echo(f"{'ok' if finding.ok else 'not ok':8}{finding.subject:16}{finding.found}")
        if not finding.ok:
            wrong += 1
            click.echo(f"{'':8}{'':16}do: {finding.advice}")
    click.echo(f"{wrong} to repair" if wrong else "ready", err=True)
    return not wrong
