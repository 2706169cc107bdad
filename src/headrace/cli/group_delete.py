"""`headrace group delete` and `headrace group delete-offsets`."""

from __future__ import annotations

import click

from headrace.cli.completions import complete_groups, complete_topics
from headrace.cli.lazy_group import FAILED
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json
from headrace.cli.values import topic_partitions
from headrace.client import group_offsets, groups, offsets
from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode


@click.command()
@click.argument("names", metavar="GROUP...", nargs=-1, required=True, shell_complete=complete_groups)
@click.option("--if-exists", is_flag=True, help="Be content if a group is not there.")
@bootstrap_option
@json_option
def delete(names: tuple[str, ...], if_exists: bool, bootstrap: str, as_json: bool) -> int:
    """Delete groups with their offsets. There is no way back.

    A group that has members is not deleted. The others that are named are, all the same.
    """
    told = with_cluster(bootstrap, lambda cluster: groups.delete_groups(cluster, names))
    absent = [
        name
        for name, refused in told.items()
        if if_exists and refused is not None and refused.code == ErrorCode.GROUP_ID_NOT_FOUND
    ]
    gone = [name for name, refused in told.items() if refused is None]
    kept = {name: refused for name, refused in told.items() if refused is not None and name not in absent}
    return _report(gone, kept, as_json)


@click.command("delete-offsets")
@click.argument("name", metavar="GROUP", shell_complete=complete_groups)
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    required=True,
    metavar="TOPIC[:PARTITIONS]",
    shell_complete=complete_topics,
    help="All its partitions, or some, as in orders:0,1; may be repeated.",
)
@bootstrap_option
@json_option
def delete_offsets(name: str, topics: tuple[str, ...], bootstrap: str, as_json: bool) -> int:
    """Delete what a group has committed for a topic.

    For a topic that the group does not read any more, so that its lag is not counted. No member may be
    subscribed to the topic.
    """
    chosen = [topic_partitions(text) for text in topics]

    async def operation(cluster: Cluster) -> dict[TopicPartition, Refused | None]:
        committed = (await group_offsets.committed_offsets(cluster, [name]))[name]
        wanted: dict[TopicPartition, None] = {}
        for topic, indexes in chosen:
            # Of a topic that is gone the offsets can be there still: they are asked for by name.
            mine = [partition for partition in committed if partition.topic == topic]
            if not indexes and not mine:
                await offsets.partitions_of(cluster, topic)
            wanted.update(dict.fromkeys(TopicPartition(topic, index) for index in indexes))
            wanted.update({} if indexes else dict.fromkeys(sorted(mine)))
        return await group_offsets.delete_offsets(cluster, name, wanted) if wanted else {}

    told = with_cluster(bootstrap, operation)
    gone = [str(partition) for partition, refused in told.items() if refused is None]
    kept = {str(partition): refused for partition, refused in told.items() if refused is not None}
    if not told and not as_json:
        click.echo(f"group {name} has committed nothing there", err=True)
    return _report(gone, kept, as_json)


def _report(gone: list[str], kept: dict[str, Refused], as_json: bool) -> int:
    if as_json:
        print_json({"deleted": gone, "refused": {name: str(refused) for name, refused in kept.items()}})
        return FAILED if kept else 0
    for name in gone:
        click.echo(f"deleted {name}")
    for refused in kept.values():
        click.echo(f"error: {refused}", err=True)
    for hint in dict.fromkeys(refused.hint for refused in kept.values() if refused.hint):
        click.echo(f"hint: {hint}", err=True)
    return FAILED if kept else 0
