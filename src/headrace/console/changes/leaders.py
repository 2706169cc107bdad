"""Leaders to their preferred replicas, and moves that are called off."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from headrace.client import moves
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.reassignments import Election, list_reassignments
from headrace.client.shell_words import command
from headrace.client.topics import describe_topics
from headrace.console.changes.planned import Line, Planned, Subject, Tell
from headrace.core.ids import TopicPartition
from headrace.desired.changes import Difference
from headrace.security.acl import ResourceType


async def plan_election(cluster: Cluster, name: str, fields: Mapping[str, str]) -> Planned:  # noqa: ARG001
    """Of the partitions whose first replica is in sync and does not lead. Others cannot be helped by it."""
    (state,) = await describe_topics(cluster, [name])
    wanted = {
        TopicPartition(name, each.partition): (each.leader, each.replicas[0])
        for each in state.partitions
        if each.replicas and each.leader != each.replicas[0]
    }
    in_sync = {TopicPartition(name, each.partition): each.isr for each in state.partitions}
    able = {place: pair for place, pair in wanted.items() if pair[1] in in_sync[place]}
    late = len(wanted) - len(able)
    notes = [f"{late} more wait until their first replica is in sync."] if late else []
    return Planned(
        Subject(ResourceType.TOPIC, name),
        f"Give leadership of {name} back",
        tuple(
            Line("~", f"partition {place}", (Difference("leader", str(old), str(new)),))
            for place, (old, new) in able.items()
        ),
        (),
        partial(_elect, list(able)),
        notes=tuple(notes),
    )


async def plan_cancellation(cluster: Cluster, name: str, fields: Mapping[str, str]) -> Planned:  # noqa: ARG001
    (state,) = await describe_topics(cluster, [name])
    places = [TopicPartition(name, each.partition) for each in state.partitions]
    moving = await list_reassignments(cluster, places)
    lines = []
    for place, move in sorted(moving.items()):
        going = ", ".join(str(each) for each in move.replicas if each not in move.removing)
        back = ", ".join(str(each) for each in move.replicas if each not in move.adding)
        lines.append(Line("-", f"move of {place}", (Difference("replicas", going, back),)))
    return Planned(
        Subject(ResourceType.TOPIC, name),
        f"Call off moves of {name}",
        tuple(lines),
        (command("headrace topic reassign", name, options="--cancel"),),
        partial(_cancel, list(moving)),
        notes=("What was copied so far is thrown away.",) if lines else (),
    )


async def _elect(places: list[TopicPartition], cluster: Cluster, tell: Tell) -> None:
    tell(f"1 of 1: elect leaders of {len(places)} partitions")
    _, refused = await moves.elect_leaders(cluster, Election.PREFERRED, places)
    if refused:
        more = f" (and {len(refused) - 1} others)" if len(refused) > 1 else ""
        raise ClientFailure(f"{next(iter(refused.values()))}{more}")


async def _cancel(places: list[TopicPartition], cluster: Cluster, tell: Tell) -> None:
    tell(f"1 of 1: call off {len(places)} moves")
    await moves.cancel(cluster, places)
