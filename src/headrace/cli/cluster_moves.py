"""`headrace cluster drain` and `headrace cluster rebalance`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import click

from headrace.cli.moving import move_options, perform, plan_moves, show_plan
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.values import counted
from headrace.client import health, reassignments
from headrace.client.agreement import until_all_agree
from headrace.client.balancing_exclusion import EXCLUDED, exclude_from_balancing
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.grouping import by_topic
from headrace.client.reassignments import Election
from headrace.client.throttles import Move
from headrace.client.topics import list_topics
from headrace.controller.balancing import Racks, Replicas, plan_drain, plan_leaders_away, plan_rebalance
from headrace.core.errors import InvalidReplicationFactor
from headrace.core.ids import TopicPartition

Planner = Callable[[Mapping[TopicPartition, Replicas], Racks], Mapping[TopicPartition, Replicas]]


@click.command()
@click.argument("broker", type=click.IntRange(0))
@click.option(
    "--leaders-only",
    is_flag=True,
    help="Move no data, only let other replicas lead. `headrace cluster rebalance` undoes it.",
)
@move_options
@bootstrap_option
@json_option
def drain(
    broker: int,
    leaders_only: bool,
    plan: bool,
    throttle: int | None,
    at_once: int,
    no_wait: bool,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Move everything away from a broker, so that it can be retired.

    Replicas go where fewest are, to other racks than those of their fellows where there are enough. When it
    is done: stop the broker, then `headrace cluster unregister BROKER`.
    """

    def planner(
        partitions: Mapping[TopicPartition, Replicas], racks: Racks
    ) -> Mapping[TopicPartition, Replicas]:
        if broker not in racks and not any(broker in replicas for replicas in partitions.values()):
            raise ClientFailure(f"there is no broker {broker}", "`headrace cluster status` shows them")
        if leaders_only:
            return plan_leaders_away(partitions, racks, (broker,))
        try:
            return plan_drain(partitions, racks, (broker,))
        except InvalidReplicationFactor as error:
            raise ClientFailure(str(error), "start another broker first") from None

    if not plan and with_cluster(bootstrap, lambda cluster: exclude_from_balancing(cluster, broker)):
        click.echo(
            f"self-balancing leaves broker {broker} alone from now on ({EXCLUDED}), until it is unregistered",
            err=True,
        )
    todo, _ = _work_out(planner, plan, bootstrap)
    if plan or not todo:
        plan_moves(bootstrap, todo, throttle, as_json)
    else:
        perform(bootstrap, todo, throttle, at_once, no_wait, as_json)


@click.command()
@move_options
@bootstrap_option
@json_option
def rebalance(
    plan: bool, throttle: int | None, at_once: int, no_wait: bool, bootstrap: str, as_json: bool
) -> None:
    """Spread replicas and leaders evenly over the brokers and racks, with as few copies as it takes.

    For after a broker was added, or after `cluster drain --leaders-only`. --plan shows the moves, and which
    partitions get their preferred leader back.
    """

    def planner(
        partitions: Mapping[TopicPartition, Replicas], racks: Racks
    ) -> Mapping[TopicPartition, Replicas]:
        return plan_rebalance(partitions, racks)

    todo, elections = _work_out(planner, plan, bootstrap)
    if plan or not (todo or elections):
        plan_moves(bootstrap, todo, throttle, as_json, elections)
        return
    if todo:
        perform(bootstrap, todo, throttle, at_once, no_wait, as_json)
    if elections:
        _elect(bootstrap, elections, as_json and not todo)


def _work_out(
    planner: Planner, plan: bool, bootstrap: str
) -> tuple[dict[TopicPartition, Move], dict[TopicPartition, tuple[int, int]]]:
    """The moves, and the elections of those that stay where they are but are led by another replica."""

    async def work_out(
        cluster: Cluster,
    ) -> tuple[dict[TopicPartition, Move], dict[TopicPartition, tuple[int, int]]]:
        if not plan and await reassignments.list_reassignments(cluster):
            raise ClientFailure(
                "replicas are being moved already, so a plan would not hold",
                "wait for them: `headrace cluster status --watch`; if self-balancing moves them, turn it off"
                " meanwhile: `headrace config set --broker-default headrace.balance.enable=false`",
            )
        topics = await list_topics(cluster, internal=True)
        states = {
            TopicPartition(topic.name, state.partition): state
            for topic in topics
            for state in topic.partitions
        }
        before = {partition: tuple(state.replicas) for partition, state in states.items()}
        view = await health.describe_cluster(cluster)
        # Only who lives can take replicas.
        racks = {broker.broker_id: broker.rack for broker in view.brokers if broker.alive}
        after = planner(before, racks)
        moving = {
            partition: Move(before[partition], tuple(replicas))
            for partition, replicas in after.items()
            if before[partition] != tuple(replicas)
        }
        elections = {
            partition: (state.leader, state.replicas[0])
            for partition, state in states.items()
            # Who is not in sync cannot be elected: the controller does it when that has changed.
            if partition not in moving and state.leader != state.replicas[0] in state.isr
        }
        return moving, elections

    return with_cluster(bootstrap, work_out)


def _elect(bootstrap: str, elections: Mapping[TopicPartition, tuple[int, int]], as_json: bool) -> None:
    async def operation(cluster: Cluster) -> tuple[list[TopicPartition], dict[TopicPartition, str]]:
        outcome = await reassignments.elect_leaders(cluster, Election.PREFERRED, list(elections))
        await until_all_agree(cluster, list(by_topic(elections)))
        return outcome

    elected, refused = with_cluster(bootstrap, operation)
    if as_json:
        show_plan({}, as_json, {partition: elections[partition] for partition in elected})
    else:
        click.echo(f"elected the preferred leaders of {counted(len(elected), 'partition')}", err=True)
    for partition, reason in sorted(refused.items()):
        click.echo(f"{partition}: {reason}", err=True)
