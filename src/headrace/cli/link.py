"""`headrace link`: topics that the brokers copy from another cluster, record by record the same."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from headrace.cli.completions import complete_topics
from headrace.cli.options import bootstrap_option, output_option, pairs, with_cluster
from headrace.cli.other_cluster import reached_by
from headrace.cli.render import print_json, print_table
from headrace.cli.values import counted
from headrace.client import links
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.links import LinkView

PROMOTION_SECONDS = 60.0
LOOK_SECONDS = 0.1
_REASONS = {
    "UNKNOWN_TOPIC_OR_PARTITION": "the source does not have it",
    "UNKNOWN_TOPIC_ID": "the source does not have it any more",
    "CORRUPT_MESSAGE": "what the source sends is damaged: it is asked for again",
}

_topic = click.argument("topic", metavar="TOPIC", shell_complete=complete_topics)


@click.group()
def link() -> None:
    """Copy topics of another cluster, and take them over.

    The leaders of a linked topic fetch from the other cluster as followers do: the same batches at the same
    offsets. Producers are refused until the topic is promoted.
    """


@link.command()
@click.argument("source_topic", metavar="TOPIC")
@click.option(
    "--source",
    required=True,
    metavar="HOST:PORT",
    help="Brokers of the other cluster, as these brokers reach them.",
)
@click.option(
    "--source-config",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Client properties with which this command looks at the other cluster.",
)
@click.option(
    "--client-config",
    metavar="NAME",
    help="Client properties with which the brokers log in there: a file in headrace.link.client.config.dir"
    " of each broker.",
)
@click.option("--as", "name", metavar="NAME", help="Name of the copy; by default that of the source.")
@click.option(
    "--groups",
    multiple=True,
    metavar="PATTERN",
    help="Groups whose offsets are committed here too, as in 'billing-*'; may be repeated.",
)
@click.option(
    "-r", "--replication-factor", type=int, default=-1, help="Replicas here; by default the broker's."
)
@click.option(
    "-c",
    "--config",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=pairs,
    help="A setting of the copy.",
)
@bootstrap_option
@output_option
def create(
    source_topic: str,
    source: str,
    source_config: str | None,
    client_config: str | None,
    name: str | None,
    groups: tuple[str, ...],
    replication_factor: int,
    settings: dict[str, str],
    bootstrap: str,
    as_json: bool,
) -> None:
    """Make a topic that copies TOPIC of another cluster, with its partitions and settings.

    Asked for again, it goes on where it was left.
    """
    topic = name or source_topic
    how = _security(source_config)

    async def work(cluster: Cluster) -> links.SourceTopic:
        with reached_by("--source", "--source-config"):
            async with Cluster(source, client_id="headrace-cli", security=how) as other:
                found = await links.look_at_source(other, source_topic)
        await links.create(
            cluster,
            found,
            topic,
            bootstrap=source,
            client_config=client_config,
            groups=groups,
            replication_factor=replication_factor,
            settings=settings,
        )
        if (await links.values_of(cluster, topic)).get(links.STATE) == links.PROMOTED:
            raise ClientFailure(
                f"topic {topic} was a copy of {source_topic} and is promoted: it copies no more",
                "--as NAME makes another copy",
            )
        return found

    found = with_cluster(bootstrap, work)
    if as_json:
        document = {"topic": topic, "partitions": found.partitions, "settings": found.settings}
        print_json({**document, "left_out": found.left_out})
        return
    click.echo(f"{topic} copies {source_topic} of {source}, {counted(found.partitions, 'partition')}")
    for setting in found.left_out:
        click.echo(f"not carried over: {setting}, which Headrace does not have")


def _security(path: str | None) -> Any:
    from headrace.client.security import PLAINTEXT, ClientSecurity

    return PLAINTEXT if path is None else ClientSecurity.read(path)


@link.command("list")
@bootstrap_option
@output_option
def list_(bootstrap: str, as_json: bool) -> None:
    """List the links, and how far they are behind."""

    async def work(cluster: Cluster) -> list[LinkView]:
        return [await links.describe(cluster, topic) for topic in await links.names(cluster)]

    found = with_cluster(bootstrap, work)
    if as_json:
        print_json([_document(each) for each in found])
        return
    print_table(
        ("TOPIC", "STATE", "LAG", "SOURCE", "SOURCE TOPIC"),
        [
            (
                each.topic,
                each.state_in_words,
                _lag(each),
                each.values.get(links.BOOTSTRAP),
                each.values.get(links.SOURCE_TOPIC),
            )
            for each in found
        ],
        empty="there are no links: `headrace link create TOPIC --source HOST:PORT` makes one",
    )


@link.command()
@_topic
@bootstrap_option
@output_option
def describe(topic: str, bootstrap: str, as_json: bool) -> None:
    """Show a link: its state, and each partition beside the source."""
    view = with_cluster(bootstrap, lambda cluster: links.describe(cluster, topic))
    if as_json:
        print_json(_document(view))
        return
    click.echo(f"{topic}: {view.state_in_words}, lag {_lag(view)}")
    for name, value in sorted(view.values.items()):
        click.echo(f"  {name}={value}")
    for error in view.errors:
        click.echo(f"  source: {error}")
    print_table(
        ("PARTITION", "END", "SOURCE END", "LAG", "LOST", "STATE"),
        [
            (each.partition, each.end, each.source_end, each.lag, each.lost, _words(each, view.state))
            for each in view.partitions
        ],
    )


def _words(partition: links.LinkedPartition, state: str) -> str:
    if partition.stopped is not None:
        return f"stopped: {partition.stopped}"
    if partition.opened is not None:
        return f"open from offset {partition.opened}"
    if state == links.PAUSED:
        return "paused"
    return _REASONS.get(partition.error or "", partition.error or "copying")


def _lag(view: LinkView) -> str:
    if view.state == links.PROMOTED:
        return "-"
    return "unknown" if view.lag < 0 else str(view.lag)


def _document(view: LinkView) -> dict[str, Any]:
    return {
        "topic": view.topic,
        "state": view.state_in_words,
        "lag": None if view.lag < 0 else view.lag,
        "values": view.values,
        "partitions": [each._asdict() for each in view.partitions],
        "errors": view.errors,
    }


@link.command()
@_topic
@bootstrap_option
def pause(topic: str, bootstrap: str) -> None:
    """Copy no more until `resume`."""
    with_cluster(bootstrap, lambda cluster: links.change(cluster, topic, {links.STATE: links.PAUSED}))
    click.echo(f"{topic} is paused")


@link.command()
@_topic
@bootstrap_option
def resume(topic: str, bootstrap: str) -> None:
    """Copy again: after a pause, or after a partition was stopped and its cause is gone."""
    with_cluster(bootstrap, lambda cluster: links.change(cluster, topic, {links.STATE: links.ACTIVE}))
    click.echo(f"{topic} copies again; `headrace link describe {topic}` shows how far it is")


@link.command()
@_topic
@click.option("--source", metavar="HOST:PORT", help="Other addresses of the same source.")
@click.option("--client-config", metavar="NAME", help="Another file of client properties.")
@click.option("--groups", multiple=True, metavar="PATTERN", help="Other groups; '' for none.")
@bootstrap_option
def alter(
    topic: str, source: str | None, client_config: str | None, groups: tuple[str, ...], bootstrap: str
) -> None:
    """Change how the source is reached, or which groups are copied."""
    values: dict[str, str | None] = {}
    if source is not None:
        values[links.BOOTSTRAP] = source
    if client_config is not None:
        values[links.CLIENT_CONFIG] = client_config or None
    if groups:
        values[links.GROUPS] = ",".join(groups) or None
    if not values:
        raise click.UsageError("name what to change: --source, --client-config, --groups")
    with_cluster(bootstrap, lambda cluster: links.change(cluster, topic, values))
    click.echo(f"the link of {topic} is changed")


@link.command()
@_topic
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--timeout",
    type=float,
    default=PROMOTION_SECONDS,
    show_default=True,
    help="Seconds to wait for all partitions.",
)
@bootstrap_option
def promote(topic: str, yes: bool, timeout: float, bootstrap: str) -> None:
    """Stop copying for good, abort what is open, and let producers write here.

    It may be asked for again at any time, and goes on by itself once it is asked for. What the source gets
    from now on is not here.
    """

    async def look(cluster: Cluster) -> LinkView:
        return await links.describe(cluster, topic)

    view = with_cluster(bootstrap, look)
    if view.state == links.PROMOTED:
        click.echo(f"{topic} is promoted already")
        return
    if not yes and view.state != links.PROMOTING:
        behind = (
            "how far it is behind is not known"
            if view.lag < 0
            else f"it is {counted(view.lag, 'record')} behind"
        )
        click.confirm(f"{topic}: {behind}. Stop copying for good?", abort=True)

    async def work(cluster: Cluster) -> LinkView:
        await links.alter(cluster, topic, {links.STATE: links.PROMOTING})
        try:
            async with asyncio.timeout(timeout):
                while (now := await links.describe(cluster, topic)).state != links.PROMOTED:
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            closed = [str(each.partition) for each in now.partitions if each.opened is None]
            raise ClientFailure(
                f"not all partitions of {topic} are open yet: {', '.join(closed)}",
                f"it goes on by itself; `headrace link describe {topic}` shows how far it is",
            ) from None
        return now

    done = with_cluster(bootstrap, work)
    click.echo(
        f"{topic} is promoted: producers may write to its {counted(len(done.partitions), 'partition')}"
    )


@link.command()
@_topic
@click.option("--yes", is_flag=True, help="Do not ask.")
@bootstrap_option
def delete(topic: str, yes: bool, bootstrap: str) -> None:
    """Delete a copy with its link. The source stays as it is."""
    if not yes:
        click.confirm(f"delete topic {topic}, which is a copy, with all its records?", abort=True)
    with_cluster(bootstrap, lambda cluster: links.delete(cluster, topic))
    click.echo(f"{topic} is deleted")
