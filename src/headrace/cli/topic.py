"""`headrace topic ...`"""

from __future__ import annotations

import click

from headrace.cli.lazy_group import LazyGroup

_COMMANDS = {
    "create": ("headrace.cli.topic_change:create", "Create topics."),
    "list": ("headrace.cli.topic_list:list_", "List topics."),
    "describe": (
        "headrace.cli.topic_describe:describe",
        "Show partitions, leaders, replicas and settings.",
    ),
    "offsets": (
        "headrace.cli.topic_offsets:offsets",
        "Show where each partition begins and ends.",
    ),
    "fork": (
        "headrace.cli.topic_fork:fork",
        "Make a topic that begins with the history of another one.",
    ),
    "alter": ("headrace.cli.topic_change:alter", "Add partitions to a topic."),
    "reassign": ("headrace.cli.topic_reassign:reassign", "Move the replicas of a topic to other brokers."),
    "elect-leaders": (
        "headrace.cli.topic_reassign:elect_leaders",
        "Give leadership back to the preferred replicas.",
    ),
    "trim": ("headrace.cli.topic_offsets:trim", "Delete the oldest records of a topic, up to an offset."),
    "delete": ("headrace.cli.topic_change:delete", "Delete topics with everything in them."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def topic() -> None:
    """Create, list, describe, fork, alter, move, trim and delete topics."""
