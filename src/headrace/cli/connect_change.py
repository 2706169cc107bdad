"""`headrace connect create`, and what starts, stops and deletes connectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from headrace.cli.connect_rest import Rest, path_of, rest_options
from headrace.cli.options import output_option
from headrace.cli.render import print_json
from headrace.config.properties_file import read_properties


@click.command()
@click.option(
    "-f",
    "--file",
    "files",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    required=True,
    help="JSON as Kafka Connect takes it, {name, config} or the settings alone; or a properties file. Can be"
    " repeated.",
)
@rest_options
@output_option
def create(files: tuple[Path, ...], rest: Rest, as_json: bool) -> None:
    """Create connectors from files, or change them to what the files say."""
    made = []
    for path in files:
        name, config = _read(path)
        made.append(rest.ask("PUT", path_of(name, "config"), config))
        if not as_json:
            click.echo(f"connector {name} is as {path} says")
    if as_json:
        print_json(made)


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    if path.suffix == ".properties":
        config: Any = dict(read_properties(str(path)))
        document: Any = {}
    else:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise click.ClickException(f"{path} is not JSON: {error}") from None
        config = document.get("config", document) if isinstance(document, dict) else None
    if not isinstance(config, dict):
        raise click.ClickException(f"{path} has no JSON object with the settings of a connector")
    name = document.get("name") or config.get("name")
    if not name:
        raise click.ClickException(f'{path} does not say the connector\'s name: add "name"')
    return str(name), config


@click.command()
@click.argument("names", nargs=-1, required=True)
@rest_options
def pause(names: tuple[str, ...], rest: Rest) -> None:
    """Pause connectors: they stay where they are."""
    _each(rest, "PUT", names, "pause", "is to pause")


@click.command()
@click.argument("names", nargs=-1, required=True)
@rest_options
def resume(names: tuple[str, ...], rest: Rest) -> None:
    """Resume connectors that are paused or stopped."""
    _each(rest, "PUT", names, "resume", "is to go on")


@click.command()
@click.argument("names", nargs=-1, required=True)
@rest_options
def stop(names: tuple[str, ...], rest: Rest) -> None:
    """Stop connectors. Only of a stopped one the offsets can be changed."""
    _each(rest, "PUT", names, "stop", "is to stop")


@click.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--only-failed", is_flag=True, help="Leave those alone that have not failed.")
@rest_options
def restart(names: tuple[str, ...], only_failed: bool, rest: Rest) -> None:
    """Start connectors anew, with their tasks."""
    query = f"restart?includeTasks=true&onlyFailed={str(only_failed).lower()}"
    _each(rest, "POST", names, query, "is to start anew")


@click.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@rest_options
def delete(names: tuple[str, ...], yes: bool, rest: Rest) -> None:
    """Delete connectors. Their topics and what they wrote stay, and so do their offsets."""
    if not yes:
        click.confirm(f"delete {', '.join(names)}?", abort=True)
    for name in names:
        rest.ask("DELETE", path_of(name))
        click.echo(f"connector {name} is deleted")


def _each(rest: Rest, method: str, names: tuple[str, ...], path: str, done: str) -> None:
    for name in names:
        rest.ask(method, path_of(name, path))
        click.echo(f"connector {name} {done}")
