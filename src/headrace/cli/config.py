"""`headrace config ...`"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from headrace.cli.completions import complete_groups, complete_topics
from headrace.cli.options import bootstrap_option, json_option, pairs, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.client.configs import (
    ConfigEntry,
    ConfigSource,
    Resource,
    ResourceType,
    alter_configs,
    describe_configs,
)
from headrace.client.errors import ClientFailure


@click.group()
def config() -> None:
    """Show and change the settings of topics, groups and brokers."""


def _target_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command gets the resource that they name."""

    @wraps(command)
    def with_resource(
        topic: str | None, group: str | None, broker: int | None, broker_default: bool, **rest: Any
    ) -> None:
        command(resource=_resource(topic, group, broker, broker_default), **rest)

    wrapped: Callable[..., None] = with_resource
    for option in (
        click.option("--broker-default", is_flag=True, help="All brokers, where they have no own setting."),
        click.option("--broker", type=click.IntRange(0), default=None, metavar="ID", help="One broker."),
        click.option(
            "--group",
            default=None,
            metavar="ID",
            help="One group of the server-side protocol.",
            shell_complete=complete_groups,
        ),
        click.option(
            "--topic", default=None, metavar="NAME", help="One topic.", shell_complete=complete_topics
        ),
    ):
        wrapped = option(wrapped)
    return wrapped


def _resource(topic: str | None, group: str | None, broker: int | None, broker_default: bool) -> Resource:
    if sum(each is not None for each in (topic, group, broker)) + broker_default != 1:
        raise click.UsageError(
            "say whose settings: exactly one of --topic, --group, --broker and --broker-default"
        )
    if topic is not None:
        return Resource(ResourceType.TOPIC, topic)
    if group is not None:
        return Resource(ResourceType.GROUP, group)
    return Resource(ResourceType.BROKER, "" if broker is None else str(broker))


def _options_of(resource: Resource) -> str:
    if resource.type is not ResourceType.BROKER:
        return f"--{resource.type.name.lower()} {resource.name}"
    return f"--broker {resource.name}" if resource.name else "--broker-default"


@config.command("list")
@_target_options
@click.option("--changed", is_flag=True, help="Only what differs from the built-in default.")
@bootstrap_option
@json_option
def list_(resource: Resource, changed: bool, bootstrap: str, as_json: bool) -> None:
    """Every setting: its value, where that comes from, and the default."""
    entries = with_cluster(bootstrap, lambda cluster: describe_configs(cluster, resource))
    if changed:
        entries = [entry for entry in entries if entry.source != ConfigSource.DEFAULT]
    _print(entries, resource, as_json)


@config.command("get")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@_target_options
@bootstrap_option
@json_option
def get(names: tuple[str, ...], resource: Resource, bootstrap: str, as_json: bool) -> None:
    """Print the value of a setting, alone on its line; of several, as NAME=VALUE."""
    entries = with_cluster(bootstrap, lambda cluster: describe_configs(cluster, resource, names))
    found = {entry.name: entry for entry in entries}
    for name in names:
        if name not in found:
            raise ClientFailure(
                f"{resource.words} has no setting {name}",
                f"`headrace config list {_options_of(resource)}` shows all of them",
            )
    if as_json:
        _print([found[name] for name in names], resource, as_json)
        return
    for name in names:
        value = _shown(found[name])
        click.echo(value if len(names) == 1 else f"{name}={value}")


@config.command("set")
@click.argument("settings", metavar="NAME=VALUE...", nargs=-1, required=True, callback=pairs)
@_target_options
@bootstrap_option
@json_option
def set_(settings: dict[str, str], resource: Resource, bootstrap: str, as_json: bool) -> None:
    """Change settings. They hold at once, without a restart."""
    with_cluster(bootstrap, lambda cluster: alter_configs(cluster, resource, dict(settings)))
    if as_json:
        print_json({"set": settings})
        return
    for name, value in settings.items():
        click.echo(f"set {name}={value} of {resource.words}")
        if _comes_later(resource, name):
            click.echo(f"note: {name} is stored, but Headrace does not use it yet", err=True)


@config.command("unset")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@_target_options
@bootstrap_option
@json_option
def unset(names: tuple[str, ...], resource: Resource, bootstrap: str, as_json: bool) -> None:
    """Remove settings. The value below applies again: of the broker, of all brokers, or the default."""
    with_cluster(bootstrap, lambda cluster: alter_configs(cluster, resource, dict.fromkeys(names)))
    if as_json:
        print_json({"unset": list(names)})
        return
    for name in names:
        click.echo(f"unset {name} of {resource.words}")


def _print(entries: list[ConfigEntry], resource: Resource, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "name": entry.name,
                    "value": entry.value,
                    "source": entry.source_name,
                    "default": entry.default,
                    "read_only": entry.read_only,
                    "sensitive": entry.sensitive,
                    "later": _comes_later(resource, entry.name),
                    "documentation": entry.documentation,
                }
                for entry in entries
            ]
        )
        return
    rows = [
        (entry.name, _shown(entry), entry.source_name, entry.default, _note(resource, entry))
        for entry in entries
    ]
    print_table(("NAME", "VALUE", "SOURCE", "DEFAULT", "NOTE"), rows, empty="nothing is set")


def _shown(entry: ConfigEntry) -> str:
    if entry.sensitive:
        return "(hidden)"
    return "" if entry.value is None else entry.value


def _note(resource: Resource, entry: ConfigEntry) -> str:
    notes = ["read-only"] if entry.read_only else []
    if _comes_later(resource, entry.name):
        notes.append("its feature comes later")
    return ", ".join(notes)


def _comes_later(resource: Resource, name: str) -> bool:
    """Whether this version accepts the setting but does not act on it yet."""
    from headrace.config.broker import BROKER_PROPERTIES
    from headrace.config.property import Status
    from headrace.config.topic_properties import TOPIC_PROPERTIES

    known = TOPIC_PROPERTIES if resource.type is ResourceType.TOPIC else BROKER_PROPERTIES
    declared = known.get(name)
    return declared is not None and declared.status is Status.LATER
