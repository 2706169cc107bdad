"""`headrace connect offsets`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from headrace.cli.connect_rest import Rest, path_of, rest_options
from headrace.cli.options import output_option
from headrace.cli.render import print_json, print_table


@click.command()
@click.argument("name")
@click.option(
    "--set",
    "change",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help='JSON as it is shown: {"offsets": [{"partition": {...}, "offset": {...} or null}]}.',
)
@click.option("--reset", is_flag=True, help="As if the connector had never run.")
@rest_options
@output_option
def offsets(name: str, change: Path | None, reset: bool, rest: Rest, as_json: bool) -> None:
    """Show, change or reset how far a connector is. To change it, stop the connector first."""
    path = path_of(name, "offsets")
    if change is not None and reset:
        raise click.UsageError("--set and --reset cannot both be meant")
    if reset:
        said = rest.ask("DELETE", path)
    elif change is not None:
        try:
            document = json.loads(change.read_text(encoding="utf-8"))
        except ValueError as error:
            raise click.ClickException(f"{change} is not JSON: {error}") from None
        said = rest.ask("PATCH", path, document)
    else:
        found = rest.get(path)
        if as_json:
            print_json(found)
            return
        rows = [(json.dumps(each["partition"]), json.dumps(each["offset"])) for each in found["offsets"]]
        print_table(("PARTITION", "OFFSET"), rows, empty="nothing has been read yet")
        return
    if as_json:
        print_json(said)
    else:
        click.echo(said["message"])
