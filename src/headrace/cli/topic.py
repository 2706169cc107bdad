"""`headrace topic ...`"""

from __future__ import annotations

import click

from headrace.cli.completions import complete_topics
from headrace.cli.lazy_group import LazyGroup
from headrace.cli.options import bootstrap_option, json_option, pairs, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.client import admin, offsets
from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.client.start import parse_start, resolve_starts
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode

_ELSEWHERE = {
    "describe": (
        "headrace.cli.topic_describe:describe",
        "Show partitions, leaders, replicas and settings.",
    ),
    "reassign": ("headrace.cli.topic_reassign:reassign", "Move the replicas of a topic to other brokers."),
    "elect-leaders": (
        "headrace.cli.topic_reassign:elect_leaders",
        "Give leadership back to the preferred replicas.",
    ),
}


@click.group(cls=LazyGroup, lazy=_ELSEWHERE)
def topic() -> None:
    """Create, list, describe, alter, move, trim and delete topics."""


@topic.command()
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


@topic.command("list")
@click.option("--internal", is_flag=True, help="Also the topics that brokers keep for themselves.")
@bootstrap_option
@json_option
def list_(internal: bool, bootstrap: str, as_json: bool) -> None:
    """List topics."""
    topics = with_cluster(bootstrap, lambda cluster: admin.list_topics(cluster, internal=internal))
    rows = [(state.name, len(state.partitions), state.replication_factor) for state in topics]
    if as_json:
        print_json(
            [
                {"name": name, "partitions": count, "replication_factor": factor}
                for name, count, factor in rows
            ]
        )
    else:
        print_table(
            ("NAME", "PARTITIONS", "REPLICAS"),
            rows,
            empty="no topics yet: `headrace topic create NAME` makes one",
        )


@topic.command()
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


@topic.command()
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


@topic.command()
@click.argument("name", shell_complete=complete_topics)
@click.option(
    "-t",
    "--to",
    "target",
    required=True,
    metavar="OFFSET|end|@TIME",
    help="The first offset to keep; 'end' keeps nothing; @TIME is milliseconds or an ISO date.",
)
@click.option(
    "-p", "--partition", type=click.IntRange(0), multiple=True, help="Only this one; may be repeated."
)
@bootstrap_option
@json_option
def trim(name: str, target: str, partition: tuple[int, ...], bootstrap: str, as_json: bool) -> None:
    """Delete the oldest records of a topic, up to an offset."""
    start = parse_start(target)

    async def operation(cluster: Cluster) -> dict[TopicPartition, int]:
        chosen = await _chosen(cluster, name, partition)
        return await admin.delete_records(cluster, await resolve_starts(cluster, chosen, start))

    _print_firsts(name, with_cluster(bootstrap, operation), as_json)


def _print_firsts(name: str, firsts: dict[TopicPartition, int], as_json: bool) -> None:
    rows = [(partition.partition, first) for partition, first in sorted(firsts.items())]
    if as_json:
        print_json([{"topic": name, "partition": index, "earliest": first} for index, first in rows])
    else:
        print_table(("PARTITION", "EARLIEST"), rows)


@topic.command("offsets")
@click.argument("name", shell_complete=complete_topics)
@click.option(
    "-p", "--partition", type=click.IntRange(0), multiple=True, help="Only this one; may be repeated."
)
@bootstrap_option
@json_option
def show_offsets(name: str, partition: tuple[int, ...], bootstrap: str, as_json: bool) -> None:
    """Show the first and the next offset of each partition."""

    async def operation(cluster: Cluster) -> dict[TopicPartition, tuple[int, int]]:
        return await offsets.ends_of(cluster, await _chosen(cluster, name, partition))

    result = with_cluster(bootstrap, operation)
    rows = [(key.partition, first, last, last - first) for key, (first, last) in sorted(result.items())]
    if as_json:
        print_json(
            [
                {"topic": name, "partition": index, "earliest": first, "latest": last}
                for index, first, last, _ in rows
            ]
        )
    else:
        print_table(("PARTITION", "EARLIEST", "LATEST", "OFFSETS"), rows)


async def _chosen(cluster: Cluster, name: str, indices: tuple[int, ...]) -> list[TopicPartition]:
    if indices:
        return [TopicPartition(name, index) for index in indices]
    return await offsets.partitions_of(cluster, name)
