"""`headrace topic create`, `alter` and `delete`."""

from __future__ import annotations

import click

from headrace.cli.completions import complete_topics
from headrace.cli.options import bootstrap_option, json_option, pairs, with_cluster
from headrace.cli.render import print_json
from headrace.client import admin
from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.protocol.error_codes import ErrorCode


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("-p", "--partitions", type=click.IntRange(1), default=None, help="Default: the broker's.")
@click.option(
    "-r", "--replication-factor", type=click.IntRange(1), default=None, help="Default: the broker's."
)
@click.option(
    "-c", "--config", "settings", multiple=True, callback=pairs, metavar="NAME=VALUE", help="A topic setting."
)
@click.option("--if-not-exists", is_flag=True, help="Be content if the topic is there already.")
@bootstrap_option
@json_option
def create(
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    settings: dict[str, str],
    if_not_exists: bool,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Create topics."""

    async def operation(cluster: Cluster) -> list[dict[str, object]]:
        made = []
        for name in names:
            try:
                count, replicas = await admin.create_topic(
                    cluster,
                    name,
                    partitions=partitions or -1,
                    replication_factor=replication_factor or -1,
                    configs=settings,
                )
            except Refused as error:
                if not if_not_exists or error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
                made.append({"name": name, "created": False})
                continue
            made.append({"name": name, "created": True, "partitions": count, "replication_factor": replicas})
        return made

    result = with_cluster(bootstrap, operation)
    if as_json:
        print_json(result)
        return
    for entry in result:
        if entry["created"]:
            replicas = entry["replication_factor"]
            click.echo(f"created {entry['name']} partitions={entry['partitions']} replicas={replicas}")
        else:
            click.echo(f"exists {entry['name']}")


@click.command()
@click.argument("name", shell_complete=complete_topics)
@click.option(
    "-p", "--partitions", type=click.IntRange(1), required=True, help="How many there shall be in all."
)
@bootstrap_option
@json_option
def alter(name: str, partitions: int, bootstrap: str, as_json: bool) -> None:
    """Add partitions to a topic. (Its settings: `headrace config set --topic`.)

    Keys that were written before stay where they are; new records with the same key may go elsewhere.
    """
    with_cluster(bootstrap, lambda cluster: admin.add_partitions(cluster, name, partitions))
    if as_json:
        print_json({"name": name, "partitions": partitions})
    else:
        click.echo(f"altered {name} partitions={partitions}")


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_topics)
@click.option("--if-exists", is_flag=True, help="Be content if the topic is not there.")
@bootstrap_option
@json_option
def delete(names: tuple[str, ...], if_exists: bool, bootstrap: str, as_json: bool) -> None:
    """Delete topics with everything in them. There is no way back."""

    async def operation(cluster: Cluster) -> list[str]:
        gone = []
        for name in names:
            try:
                await admin.delete_topics(cluster, [name])
            except Refused as error:
                if not if_exists or error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                continue
            gone.append(name)
        return gone

    result = with_cluster(bootstrap, operation)
    if as_json:
        print_json({"deleted": result})
        return
    for name in result:
        click.echo(f"deleted {name}")
