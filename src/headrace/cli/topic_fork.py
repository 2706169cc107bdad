"""`headrace topic fork`: a topic that begins with the history of another one, without a copy of it."""

from __future__ import annotations

import click

from headrace.cli.completions import complete_topics
from headrace.cli.options import bootstrap_option, json_option, pairs, with_cluster
from headrace.cli.render import print_json
from headrace.client.cluster import Cluster
from headrace.client.forks import ForkedTopic, fork_topic
from headrace.client.start import parse_start


@click.command()
@click.argument("origin", shell_complete=complete_topics)
@click.argument("name")
@click.option(
    "--at",
    "place",
    default="latest",
    show_default=True,
    metavar="OFFSET|latest|@TIME",
    help="The first offset that it has not; 'latest' takes all that is in the store; @TIME is milliseconds or"
    " an ISO date.",
)
@click.option(
    "-c",
    "--config",
    "settings",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="A setting of the fork that is another than its origin's.",
)
@bootstrap_option
@json_option
def fork(origin: str, name: str, place: str, settings: dict[str, str], bootstrap: str, as_json: bool) -> None:
    """Make a topic that has the history of ORIGIN up to an offset, and goes on by itself.

    Both name the same objects in the store: nothing is copied, however long the history is. From then on they
    are two topics. Each is written, retained and deleted without harm to the other. Partitions, replicas and
    settings are the origin's. What is on the brokers' disks alone cannot be forked: `headrace tier status`
    shows how far the store is.

    A batch of records is not divided: a fork within one ends before it. A transaction that was open there
    ends as it ended in the origin.
    """
    at = parse_start(place)

    async def operation(cluster: Cluster) -> ForkedTopic:
        return await fork_topic(cluster, origin, name, at, settings)

    made = with_cluster(bootstrap, operation)
    if as_json:
        offsets = [{"partition": number, "offset": offset} for number, offset in enumerate(made.offsets)]
        print_json({"name": name, "origin": origin, "partitions": offsets})
        return
    ends = ", ".join(f"{number}: {offset}" for number, offset in enumerate(made.offsets[:8]))
    more = " ..." if len(made.offsets) > 8 else ""
    click.echo(f"forked {origin} as {name} at {ends}{more}")
