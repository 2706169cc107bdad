"""`headrace log ...`: the files of a log, without a broker."""

from __future__ import annotations

import click

from headrace.cli.options import json_option
from headrace.cli.render import print_json_line


@click.group()
def log() -> None:
    """Look into the files of a log; adopt those of Apache Kafka."""


@log.command()
@click.argument("paths", metavar="FILE|DIR...", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--records", is_flag=True, help="Also the records inside the batches.")
@json_option
def dump(paths: tuple[str, ...], records: bool, as_json: bool) -> int:
    """Print what .log, .index, .timeindex, .txnindex, .snapshot and metadata files hold.

    With --json, one line for each entry. The exit code is 1 if anything is broken.
    """
    from headrace.cli.log_files import find_files, read_file

    broken = False
    for path in find_files(paths):
        if not as_json:
            click.echo(f"== {path}")
        for entry in read_file(path, records=records):
            broken = broken or entry["kind"] == "fault"
            if as_json:
                print_json_line({"file": str(path), **entry})
            else:
                click.echo(_line(entry), err=entry["kind"] == "fault")
    return int(broken)


def _line(entry: dict[str, object]) -> str:
    kind = entry["kind"]
    fields = " ".join(f"{name}={_shown(value)}" for name, value in entry.items() if name != "kind")
    if kind == "fault":
        return f"error: {entry['error']}"
    return f"  {fields}" if kind == "record" else fields


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return repr(value) if not value or any(c.isspace() or not c.isprintable() for c in value) else value
    return str(value)
