"""`headrace topic describe`: partitions, who leads, who is in sync, and how far the others are behind."""

from __future__ import annotations

from typing import NamedTuple

import click

from headrace.cli.completions import complete_topics
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.cli.tier_status import print_tiers
from headrace.cli.values import counted
from headrace.client import configs, health, log_dirs
from headrace.client.cluster import Cluster
from headrace.client.log_dirs import Arrivals, Files
from headrace.client.tiering import ENABLE, PartitionTier, describe_tiers
from headrace.client.topics import PartitionState, TopicState, describe_topics
from headrace.core.ids import TopicPartition


class Described(NamedTuple):
    states: list[TopicState]
    own: dict[str, dict[str, str | None]]
    """Settings of each topic that differ from the defaults."""
    files: Files
    arrivals: Arrivals
    """Replicas that move between the log directories of their broker."""
    tiers: dict[TopicPartition, PartitionTier]
    """Of topics with history in an object store."""


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_topics)
@bootstrap_option
@json_option
def describe(names: tuple[str, ...], bootstrap: str, as_json: bool) -> None:
    """Show partitions, leaders, replicas and the settings that differ from the defaults.

    ELIGIBLE are replicas that are out of sync and may lead all the same, because they hold all that is
    committed. LAG is how many records each follower is behind; ? where its broker does not answer.
    """
    described = with_cluster(bootstrap, lambda cluster: _ask(cluster, names))
    if as_json:
        print_json([_document(state, described) for state in described.states])
        return
    for state in described.states:
        click.echo(f"{state.name}  id={state.topic_id}")
        for name, value in described.own[state.name].items():
            click.echo(f"  {name}={value}")
        print_table(
            ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN-SYNC", "ELIGIBLE", "OFFLINE", "LAG", "BYTES"),
            [_row(state.name, partition, described.files) for partition in state.partitions],
        )
        for partition in state.partitions:
            for broker_id, directory, files in described.arrivals.get(
                TopicPartition(state.name, partition.partition), ()
            ):
                click.echo(
                    f"  partition {partition.partition} of broker {broker_id} moves to {directory}:"
                    f" {files.size} bytes are there, {counted(files.lag, 'record')} missing"
                )
        tiers = {name: tier for name, tier in described.tiers.items() if name.topic == state.name}
        if tiers:
            print_tiers(tiers)


async def _ask(cluster: Cluster, names: tuple[str, ...]) -> Described:
    states = await describe_topics(cluster, names)
    own = {}
    for state in states:
        resource = configs.Resource(configs.ResourceType.TOPIC, state.name)
        entries = await configs.describe_configs(cluster, resource)
        own[state.name] = {
            entry.name: entry.value for entry in entries if entry.source == configs.ConfigSource.TOPIC
        }
    view = await health.describe_cluster(cluster)
    alive = [broker.broker_id for broker in view.brokers if broker.alive]
    files, arrivals = await log_dirs.files_and_arrivals(cluster, health.holders_of(states, alive))
    tiered = [name for name, settings in own.items() if settings.get(ENABLE) == "true"]
    return Described(states, own, files, arrivals, await describe_tiers(cluster, tiered))


def _lags(topic: str, state: PartitionState, files: Files) -> dict[int, int | None]:
    """Of each follower; None where it is not known, as without a leader to lag behind."""
    key = TopicPartition(topic, state.partition)
    found = {b: files.get((key, b)) for b in state.replicas if b != state.leader}
    return {b: None if entry is None or state.leader < 0 else entry.lag for b, entry in found.items()}


def _size(topic: str, state: PartitionState, files: Files) -> int | None:
    entry = files.get((TopicPartition(topic, state.partition), state.leader))
    return None if entry is None else entry.size


def _row(topic: str, state: PartitionState, files: Files) -> tuple[object, ...]:
    lags = [f"{b}:{'?' if lag is None else lag}" for b, lag in _lags(topic, state, files).items()]
    return (
        state.partition,
        state.leader if state.leader >= 0 else None,
        state.leader_epoch,
        list(state.replicas),
        list(state.isr),
        list(state.eligible),
        list(state.offline),
        lags,
        _size(topic, state, files),
    )


def _tier(name: TopicPartition, described: Described) -> dict[str, int] | None:
    tier = described.tiers.get(name)
    return None if tier is None else tier._asdict()


def _document(state: TopicState, described: Described) -> dict[str, object]:
    return {
        "name": state.name,
        "topic_id": str(state.topic_id),
        "internal": state.internal,
        "configs": described.own[state.name],
        "partitions": [
            {
                **partition._asdict(),
                "lag": _lags(state.name, partition, described.files),
                "bytes": _size(state.name, partition, described.files),
                "tier": _tier(TopicPartition(state.name, partition.partition), described),
                "moving": [
                    {"broker": broker_id, "directory": directory, **files._asdict()}
                    for broker_id, directory, files in described.arrivals.get(
                        TopicPartition(state.name, partition.partition), ()
                    )
                ],
            }
            for partition in state.partitions
        ],
    }
