"""`headrace connect list`, `status` and `plugins`."""

from __future__ import annotations

from typing import Any

import click

from headrace.cli.connect_rest import Rest, path_of, rest_options
from headrace.cli.options import output_option
from headrace.cli.render import print_json, print_table


@click.command("list")
@rest_options
@output_option
def list_connectors(rest: Rest, as_json: bool) -> None:
    """List connectors and how they are, by one request."""
    found = rest.get("/connectors?expand=info&expand=status")
    if as_json:
        print_json(found)
        return
    rows = [_row(name, found[name]) for name in sorted(found)]
    print_table(("NAME", "TYPE", "STATE", "TASKS", "FAILED", "WORKER", "CLASS"), rows, empty="no connectors")


def _row(name: str, entry: dict[str, Any]) -> tuple[object, ...]:
    status, info = entry.get("status", {}), entry.get("info", {})
    tasks = status.get("tasks", [])
    failed = sum(each["state"] == "FAILED" for each in tasks)
    connector = status.get("connector", {})
    kind = str(info.get("config", {}).get("connector.class", "")).rpartition(".")[2]
    return (
        name,
        info.get("type"),
        connector.get("state"),
        len(tasks),
        failed,
        connector.get("worker_id"),
        kind,
    )


@click.command()
@click.argument("name")
@rest_options
@output_option
def status(name: str, rest: Rest, as_json: bool) -> None:
    """Show one connector, its tasks, and why they failed or what of them stands still."""
    found = rest.get(path_of(name, "status"))
    if as_json:
        print_json(found)
        return
    parts = [("connector", found["connector"]), *((f"task {each['id']}", each) for each in found["tasks"])]
    rows = [(what, each["state"], each["worker_id"]) for what, each in parts]
    print_table(("PART", "STATE", "WORKER"), rows)
    for trace in dict.fromkeys(each["trace"] for _, each in parts if each.get("trace")):
        click.echo(f"\n{trace}")


@click.command()
@click.argument("plugin", required=False)
@rest_options
@output_option
def plugins(plugin: str | None, rest: Rest, as_json: bool) -> None:
    """List the kinds of connectors, or the settings of one."""
    if plugin is None:
        found = rest.get("/connector-plugins")
        rows: list[tuple[object, ...]] = [(each["type"], each["class"], each["version"]) for each in found]
        columns: tuple[str, ...] = ("TYPE", "CLASS", "VERSION")
    else:
        found = rest.get(f"/connector-plugins/{plugin}/config")
        rows = [
            (
                each["name"],
                each["type"].lower(),
                "required" if each["required"] else each["default_value"],
                each["documentation"],
            )
            for each in found
        ]
        columns = ("SETTING", "TYPE", "DEFAULT", "WHAT IT SAYS")
    if as_json:
        print_json(found)
        return
    print_table(columns, rows, empty="no connectors are installed")
