"""`headrace group list` and `headrace group describe`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from headrace.cli.completions import complete_groups
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.client import groups
from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.client.group_offsets import committed_offsets
from headrace.client.grouping import by_topic
from headrace.client.groups import Group, ListedGroup, Member
from headrace.core.ids import TopicPartition


@click.command("list")
@click.option("--state", "states", multiple=True, help="Only groups in this state; may be repeated.")
@click.option(
    "--type",
    "kinds",
    multiple=True,
    type=click.Choice(["classic", "consumer", "share", "streams"]),
    help="Only groups of this type; may be repeated.",
)
@bootstrap_option
@json_option
def list_(states: tuple[str, ...], kinds: tuple[str, ...], bootstrap: str, as_json: bool) -> None:
    """List groups, their state and how many members they have."""
    wanted = {state.lower() for state in states}

    async def operation(cluster: Cluster) -> list[tuple[ListedGroup, Group | None]]:
        found = [
            entry
            for entry in await groups.list_groups(cluster)
            if (not wanted or entry.state.lower() in wanted) and (not kinds or entry.kind in kinds)
        ]
        described = await groups.describe_groups(cluster, [entry.group_id for entry in found])
        told = [(entry, described[entry.group_id]) for entry in found]
        return [(entry, None if isinstance(group, Refused) else group) for entry, group in told]

    rows = [
        (
            entry.group_id,
            entry.kind or (group.kind if group else None),
            entry.state or (group.state if group else None),
            (group.assignor if group else "") or entry.protocol_type or None,
            len(group.members) if group else None,
            entry.coordinator,
        )
        for entry, group in with_cluster(bootstrap, operation)
    ]
    if as_json:
        names = ("group", "type", "state", "protocol", "members", "coordinator")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_table(
            ("GROUP", "TYPE", "STATE", "PROTOCOL", "MEMBERS", "COORDINATOR"),
            rows,
            empty="no groups: a consumer makes one when it subscribes with a group.id",
        )


@click.command()
@click.argument("names", metavar="GROUP...", nargs=-1, required=True, shell_complete=complete_groups)
@bootstrap_option
@json_option
def describe(names: tuple[str, ...], bootstrap: str, as_json: bool) -> None:
    """Show members, where they run, and what they read.

    PARTITIONS is what a member has. In a group of type consumer, COMING is what it shall have and does not
    have yet, because another member has not given it up.
    """

    async def operation(cluster: Cluster) -> list[tuple[Group, int]]:
        found = await groups.describe_groups(cluster, names)
        refused = [outcome for outcome in found.values() if isinstance(outcome, Refused)]
        if refused:
            raise refused[0]
        offsets = await committed_offsets(cluster, names)
        known = [outcome for outcome in found.values() if isinstance(outcome, Group)]
        return [(group, len(offsets[group.group_id])) for group in known]

    described = with_cluster(bootstrap, operation)
    if as_json:
        print_json([_document(group, committed) for group, committed in described])
        return
    for at, (group, committed) in enumerate(described):
        if at:
            click.echo()
        _print(group, committed)


def _print(group: Group, committed: int) -> None:
    epochs = "" if group.epoch is None else f"  epoch={group.epoch} assignment-epoch={group.assignment_epoch}"
    protocol = f"  protocol={group.protocol_type}" if group.protocol_type != groups.CONSUMER_PROTOCOL else ""
    click.echo(
        f"{group.group_id}  type={group.kind}  state={group.state}{protocol}  "
        f"assignor={group.assignor or '-'}  coordinator={group.coordinator}{epochs}"
    )
    click.echo(f"  members={len(group.members)}  partitions with committed offsets={committed}")
    server_side = group.kind == groups.CONSUMER
    columns = ["MEMBER", "INSTANCE", "CLIENT", "HOST", *(["EPOCH", "COMING"] if server_side else [])]
    columns.append("PARTITIONS")
    print_table(columns, [_row(member, server_side) for member in group.members], ids=("MEMBER",))


def _row(member: Member, server_side: bool) -> tuple[object, ...]:
    coming = [partition for partition in member.target or () if partition not in member.assigned]
    extra = (member.epoch, _named(coming)) if server_side else ()
    return (
        member.member_id,
        member.instance_id,
        member.client_id,
        member.host,
        *extra,
        _named(member.assigned),
    )


def _named(partitions: Sequence[TopicPartition]) -> str:
    """orders:0,1,2 clicks:4"""
    topics = by_topic(partitions)
    return " ".join(f"{topic}:{','.join(map(str, indexes))}" for topic, indexes in topics.items())


def _document(group: Group, committed: int) -> dict[str, object]:
    return {
        "group": group.group_id,
        "type": group.kind,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": group.assignor,
        "coordinator": group.coordinator,
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "committed_partitions": committed,
        "members": [
            {
                "id": member.member_id,
                "instance": member.instance_id,
                "client": member.client_id,
                "host": member.host,
                "rack": member.rack,
                "epoch": member.epoch,
                "subscribed": None if member.topics is None else list(member.topics),
                "subscribed_regex": member.regex,
                "assigned": by_topic(member.assigned),
                "target": None if member.target is None else by_topic(member.target),
            }
            for member in group.members
        ],
    }
