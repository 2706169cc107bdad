"""`headrace topic offsets` and `trim`: where the partitions of a topic begin and end, and a new beginning."""

from __future__ import annotations

import click

from headrace.cli.completions import complete_topics
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.client.admin import delete_records
from headrace.client.cluster import Cluster
from headrace.client.offsets import ends_of, partitions_of
from headrace.client.start import parse_start, resolve_starts
from headrace.core.ids import TopicPartition


@click.command()
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
        return await delete_records(cluster, await resolve_starts(cluster, chosen, start))

    _print_firsts(name, with_cluster(bootstrap, operation), as_json)


def _print_firsts(name: str, firsts: dict[TopicPartition, int], as_json: bool) -> None:
    rows = [(partition.partition, first) for partition, first in sorted(firsts.items())]
    if as_json:
        print_json([{"topic": name, "partition": index, "earliest": first} for index, first in rows])
    else:
        print_table(("PARTITION", "EARLIEST"), rows)


@click.command()
@click.argument("name", shell_complete=complete_topics)
@click.option(
    "-p", "--partition", type=click.IntRange(0), multiple=True, help="Only this one; may be repeated."
)
@bootstrap_option
@json_option
def offsets(name: str, partition: tuple[int, ...], bootstrap: str, as_json: bool) -> None:
    """Show the first and the next offset of each partition."""

    async def operation(cluster: Cluster) -> dict[TopicPartition, tuple[int, int]]:
        return await ends_of(cluster, await _chosen(cluster, name, partition))

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
    return await partitions_of(cluster, name)
