"""`headrace topic reassign` and `headrace topic elect-leaders`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import click

from headrace.cli.completions import complete_topics
from headrace.cli.moving import move_options, perform, plan_moves
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json
from headrace.cli.values import assignments, broker_list
from headrace.client import health, moves, offsets
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.reassignments import Election
from headrace.client.replica_ends import (
    Replica,
    Replicas,
    ends_of_leaderless,
    worth_a_restart,
    would_lead,
)
from headrace.client.throttles import Move
from headrace.client.topics import describe_topics
from headrace.controller.topic_spreading import spread_topic
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode


@click.command()
@click.argument("topic", shell_complete=complete_topics)
@click.option(
    "-r",
    "--replicas",
    multiple=True,
    metavar="PARTITION=BROKERS",
    help="The replicas of one partition, preferred leader first, such as 0=1,2,3; may be repeated.",
)
@click.option(
    "--brokers", metavar="1,2,3", help="Spread every partition over these brokers; what is there stays."
)
@click.option(
    "--replication-factor",
    type=click.IntRange(1),
    default=None,
    help="With --brokers: another number of replicas.",
)
@click.option("--cancel", is_flag=True, help="Call off what is in progress.")
@click.option("--follow", is_flag=True, help="Wait for what is in progress, then take its throttle away.")
@move_options
@bootstrap_option
@json_option
def reassign(
    topic: str,
    replicas: tuple[str, ...],
    brokers: str | None,
    replication_factor: int | None,
    cancel: bool,
    follow: bool,
    plan: bool,
    throttle: int | None,
    at_once: int,
    no_wait: bool,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Move the replicas of a topic to other brokers.

    \b
    headrace topic reassign orders --brokers 1,2,3 --throttle 50MB
    headrace topic reassign orders --replicas 0=1,2,3 --replicas 1=2,3,1
    headrace topic reassign orders --cancel

    The data is copied first and the old replicas are dropped last: the topic is never less safe than before.
    """
    if sum((bool(replicas), brokers is not None, cancel, follow)) != 1:
        raise click.UsageError("give one of --replicas, --brokers, --cancel and --follow")
    if replication_factor is not None and brokers is None:
        raise click.UsageError("--replication-factor needs --brokers")
    if cancel or follow:
        _stop_or_follow(topic, cancel, bootstrap, as_json)
        return
    named = assignments(topic, replicas)
    chosen = broker_list(brokers) if brokers is not None else []

    async def work_out(cluster: Cluster) -> dict[TopicPartition, Move]:
        (state,) = await describe_topics(cluster, [topic])
        before = {TopicPartition(topic, p.partition): tuple(p.replicas) for p in state.partitions}
        after: dict[TopicPartition, tuple[int, ...]] = {p: tuple(ids) for p, ids in named.items()}
        if chosen:
            view = await health.describe_cluster(cluster)
            racks = {broker.broker_id: broker.rack for broker in view.brokers if broker.broker_id in chosen}
            missing = [broker_id for broker_id in chosen if broker_id not in racks]
            if missing:
                raise ClientFailure(
                    f"there is no broker {missing[0]}", "`headrace cluster status` shows them"
                )
            after = spread_topic(before, racks, replication_factor)
        for partition in after:
            if partition not in before:
                raise ClientFailure(f"topic {topic} has no partition {partition.partition}")
        return {p: Move(before[p], ids) for p, ids in after.items() if before[p] != ids}

    todo = with_cluster(bootstrap, work_out)
    if plan or not todo:
        plan_moves(bootstrap, todo, throttle, as_json)
        return
    perform(bootstrap, todo, throttle, at_once, no_wait, as_json)


def _stop_or_follow(topic: str, cancel: bool, bootstrap: str, as_json: bool) -> None:
    async def operation(cluster: Cluster) -> list[TopicPartition]:
        partitions = await offsets.partitions_of(cluster, topic)
        if cancel:
            return await moves.cancel(cluster, partitions)
        with ProgressLine() as line:
            return await moves.follow(cluster, partitions, tell=line.tell)

    result = with_cluster(bootstrap, operation)
    word = "cancelled" if cancel else "moved"
    if as_json:
        print_json({word: [str(partition) for partition in result]})
        return
    for partition in result:
        click.echo(f"{word} {partition}")
    if not result:
        click.echo(f"nothing of {topic} is being moved", err=True)


def _show_replicas(ends: Mapping[TopicPartition, Replicas]) -> None:
    """What each replica has, who would lead, and what to do before that."""
    for name, replicas in ends.items():
        told = ", ".join(f"broker {broker_id} {_replica(each)}" for broker_id, each in replicas.items())
        chosen = would_lead(replicas)
        leads = "nobody can lead" if chosen is None else f"broker {chosen} would lead"
        click.echo(f"{name}: {told}; {leads}", err=True)
        longer = worth_a_restart(replicas)
        if longer:
            brokers = " and ".join(f"broker {broker_id}" for broker_id in longer)
            click.echo(
                f"{name}: do not go on yet: a quarantined log has more. Restart {brokers}, which may open it"
                " again, then elect again",
                err=True,
            )


def _replica(each: Replica | None) -> str:
    if each is None:
        return "does not answer"
    if each.is_quarantined:
        return f"is alive, its replica is quarantined and ended at {each.end}"
    if each.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
        return "is alive, its replica is quarantined or on a directory that is offline"
    return f"ends at {each.end}" if not each.error_code else "is alive and does not serve its replica"


def _confirm_unclean(bootstrap: str, topics: Sequence[str], only: Sequence[int], *, ask: bool) -> bool:
    """Show what each replica has, and ask. False: there is nothing to elect."""
    ends = with_cluster(bootstrap, lambda cluster: _leaderless_ends(cluster, topics, only))
    if not ends:
        return False
    _show_replicas(ends)
    if not ask:
        return True
    click.confirm(
        f"records of {', '.join(topics)} that were acknowledged, and that only others have, are lost. Go on?",
        abort=True,
        err=True,
    )
    return True


async def _leaderless_ends(
    cluster: Cluster, topics: Sequence[str], only: Sequence[int]
) -> dict[TopicPartition, Replicas]:
    states = await describe_topics(cluster, list(topics))
    for index in only:
        _require_partition(topics[0], index, [each.partition for each in states[0].partitions])
    ends = await ends_of_leaderless(cluster, states)
    return {name: each for name, each in ends.items() if not only or name.partition in only}


def _require_partition(topic: str, index: int, there: Collection[int]) -> None:
    if index not in there:
        raise ClientFailure(
            f"topic {topic} has no partition {index}", f"`headrace topic describe {topic}` shows them"
        )


@click.command("elect-leaders")
@click.argument("topics", metavar="[TOPIC...]", nargs=-1, shell_complete=complete_topics)
@click.option(
    "-p", "--partition", type=click.IntRange(0), multiple=True, help="Only this one; may be repeated."
)
@click.option(
    "--unclean",
    is_flag=True,
    help="Let a replica lead that was not in sync, where no other is left. Acknowledged records can be lost.",
)
@click.option("--yes", is_flag=True, help="Do not ask before an unclean election.")
@bootstrap_option
@json_option
def elect_leaders(
    topics: tuple[str, ...],
    partition: tuple[int, ...],
    unclean: bool,
    yes: bool,
    bootstrap: str,
    as_json: bool,
) -> int:
    """Give leadership back to the preferred replicas: of these topics, or of all."""
    if partition and len(topics) != 1:
        raise click.UsageError("--partition needs exactly one topic")
    if unclean and not topics:
        raise click.UsageError("an unclean election can lose records: name the topics")
    leaders: dict[TopicPartition, int] = {}
    refused: dict[TopicPartition, str] = {}
    if not unclean or _confirm_unclean(bootstrap, topics, partition, ask=not yes):
        kind = Election.UNCLEAN if unclean else Election.PREFERRED
        leaders, refused = with_cluster(bootstrap, lambda cluster: _elect(cluster, kind, topics, partition))
    if as_json:
        reasons = {str(name): reason for name, reason in refused.items()}
        named = {str(name): leader for name, leader in leaders.items()}
        print_json({"elected": list(named), "leaders": named, "refused": reasons})
    else:
        for name, leader in leaders.items():
            click.echo(f"elected {name}: broker {leader} leads")
        for reason in refused.values():
            click.echo(f"refused {reason}", err=True)
        if not leaders and not refused:
            done = "has a leader: nothing was done" if unclean else "is led by its preferred replica"
            click.echo(f"every partition {done}", err=True)
    return 1 if refused else 0


async def _elect(
    cluster: Cluster, kind: Election, topics: Sequence[str], only: Sequence[int]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
    """(who leads those with a new leader, why others were refused)"""
    wanted: list[TopicPartition] | None = None
    if topics:
        wanted = [p for name in topics for p in await offsets.partitions_of(cluster, name)]
        for index in only:
            _require_partition(topics[0], index, [p.partition for p in wanted])
        wanted = [p for p in wanted if not only or p.partition in only]
    elected, refused = await moves.elect_leaders(cluster, kind, wanted)
    names = sorted({name.topic for name in elected})
    states = await describe_topics(cluster, names) if names else []
    now = {TopicPartition(state.name, p.partition): p.leader for state in states for p in state.partitions}
    return {name: now[name] for name in elected}, refused
