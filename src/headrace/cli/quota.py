"""`headrace quota`: how much users, client ids and addresses may take."""

from __future__ import annotations

import click

from headrace.cli.options import bootstrap_option, bundled, output_option, pairs, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.client import quotas
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.quota_values import number_of, quota_value
from headrace.client.quotas import CLIENT_ID, IP, USER, Entity, Quota


def _entity(
    user: str | None,
    user_default: bool,
    client_id: str | None,
    client_id_default: bool,
    ip: str | None,
    ip_default: bool,
) -> Entity:
    parts: list[tuple[str, str | None]] = []
    for kind, name, is_default in (
        (CLIENT_ID, client_id, client_id_default),
        (IP, ip, ip_default),
        (USER, user, user_default),
    ):
        if name is not None and is_default:
            raise click.UsageError(f"--{kind} and --{kind}-default exclude each other")
        if name is not None or is_default:
            parts.append((kind, name))
    if any(kind == IP for kind, _ in parts) and len(parts) > 1:
        raise click.UsageError("an address cannot be combined with a user or a client id")
    return tuple(parts)


_entity_options = bundled(
    "entity",
    _entity,
    ("user", "user_default", "client_id", "client_id_default", "ip", "ip_default"),
    (
        click.option("--user", metavar="NAME", help="One user: alice, not User:alice."),
        click.option("--user-default", is_flag=True, help="Every user without one of its own."),
        click.option("--client-id", metavar="ID", help="One client id."),
        click.option("--client-id-default", is_flag=True, help="Every client id without one of its own."),
        click.option("--ip", metavar="ADDRESS", help="One address."),
        click.option("--ip-default", is_flag=True, help="Every address without a quota of its own."),
    ),
)


@click.group()
def quota() -> None:
    """Show and change quotas of users, client ids and addresses.

    A quota holds for a user, for a client id, for both together, or for an address.
    """


@quota.command("list")
@_entity_options
@bootstrap_option
@output_option
def list_(
    entity: Entity,
    bootstrap: str,
    as_json: bool,
) -> None:
    """List the quotas that are set, of all or of those that are named."""
    found = with_cluster(bootstrap, lambda cluster: quotas.describe_quotas(cluster, entity))
    if as_json:
        print_json([_document(each) for each in found])
        return
    print_table(
        ("ENTITY", "QUOTA", "VALUE"),
        [(each.words, key, number_of(value)) for each in found for key, value in sorted(each.values.items())],
        empty="no quotas are set: `headrace quota set --user NAME producer_byte_rate=10MB` sets one",
    )


@quota.command("set")
@click.argument("settings", metavar="QUOTA=VALUE...", nargs=-1, required=True, callback=pairs)
@_entity_options
@bootstrap_option
@output_option
def set_(
    settings: dict[str, str],
    entity: Entity,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Set quotas. They hold at each broker by itself.

    \b
    producer_byte_rate, consumer_byte_rate    bytes a second: 500000, 10MB
    request_percentage                        of the time of one core
    controller_mutation_rate                  partitions created or deleted a second
    connection_creation_rate                  connections a second; only with --ip
    """
    _require_one(entity)
    values: dict[str, float | None] = {name: _value(name, text) for name, text in settings.items()}
    with_cluster(bootstrap, lambda cluster: quotas.alter_quotas(cluster, entity, values))
    if as_json:
        print_json({"entity": dict(entity), "set": values})
        return
    for name, value in values.items():
        click.echo(f"set {name}={number_of(value or 0.0)} of {quotas.words_of(entity)}")


@quota.command()
@click.argument("names", metavar="[QUOTA]...", nargs=-1)
@_entity_options
@bootstrap_option
@output_option
def remove(
    names: tuple[str, ...],
    entity: Entity,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Remove quotas of one entity: those that are named, or all."""
    _require_one(entity)

    async def change(cluster: Cluster) -> list[str]:
        found = await quotas.describe_quotas(cluster, entity, strict=True)
        present = sorted(found[0].values) if found else []
        missing = [name for name in names if name not in present]
        if missing or not present:
            raise ClientFailure(
                f"{quotas.words_of(entity)} has no quota {missing[0] if missing else ''}".rstrip(),
                "`headrace quota list` shows what is set",
            )
        chosen = list(names or present)
        await quotas.alter_quotas(cluster, entity, dict.fromkeys(chosen))
        return chosen

    gone = with_cluster(bootstrap, change)
    if as_json:
        print_json({"entity": dict(entity), "removed": gone})
        return
    for name in gone:
        click.echo(f"removed {name} of {quotas.words_of(entity)}")


def _require_one(entity: Entity) -> None:
    if not entity:
        raise click.UsageError("say whose quota: --user, --client-id, both, or --ip; or one of the defaults")


def _value(name: str, text: str) -> float:
    try:
        return quota_value(name, text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _document(found: Quota) -> dict[str, object]:
    return {
        "entity": dict(found.entity),
        "quotas": {key: number_of(value) for key, value in sorted(found.values.items())},
    }
