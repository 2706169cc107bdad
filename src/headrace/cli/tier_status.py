"""`headrace tier status`: how far the history of topics is in the object store."""

from __future__ import annotations

from collections.abc import Mapping

import click

from headrace.cli.completions import complete_topics
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.client.cluster import Cluster
from headrace.client.tiering import PartitionTier, describe_tiers, tiered_topics
from headrace.core.ids import TopicPartition

HEADINGS = ("TOPIC", "PARTITION", "LOG-START", "LOCAL-START", "TIERED-TO", "END", "ONLY-REMOTE", "ONLY-LOCAL")


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_topics)
@bootstrap_option
@json_option
def status(names: tuple[str, ...], bootstrap: str, as_json: bool) -> None:
    """Show how far topics are in the object store; without names, all that have history there.

    LOCAL-START is where the leader's disk begins, TIERED-TO the first offset that is not in the store.
    ONLY-REMOTE and ONLY-LOCAL are how many offsets lie in one of the two places alone.
    """

    async def operation(cluster: Cluster) -> Mapping[TopicPartition, PartitionTier]:
        return await describe_tiers(cluster, await tiered_topics(cluster, names))

    found = with_cluster(bootstrap, operation)
    if as_json:
        print_json([document(name, tier) for name, tier in sorted(found.items())])
    else:
        print_tiers(found, empty="no topic has history in an object store: set remote.storage.enable on one")


def print_tiers(tiers: Mapping[TopicPartition, PartitionTier], *, empty: str = "") -> None:
    print_table(
        HEADINGS,
        [(*name, *tier, tier.only_remote, tier.only_local) for name, tier in sorted(tiers.items())],
        empty=empty,
    )


def document(name: TopicPartition, tier: PartitionTier) -> dict[str, object]:
    return {
        "topic": name.topic,
        "partition": name.partition,
        **tier._asdict(),
        "only_remote": tier.only_remote,
        "only_local": tier.only_local,
    }
