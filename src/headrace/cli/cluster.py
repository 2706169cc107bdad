"""`headrace cluster ...`"""

from __future__ import annotations

import click

from headrace.cli.lazy_group import LazyGroup

_COMMANDS = {
    "status": (
        "headrace.cli.cluster_status:status",
        "Show brokers, controller, and what is not as it should be.",
    ),
    "drain": (
        "headrace.cli.cluster_moves:drain",
        "Move everything away from a broker, or only its leaderships.",
    ),
    "rebalance": (
        "headrace.cli.cluster_moves:rebalance",
        "Spread replicas and leaders evenly; --plan only shows how.",
    ),
    "balance": (
        "headrace.cli.cluster_balance:balance",
        "Show how even the brokers are, and what self-balancing does.",
    ),
    "roll": (
        "headrace.cli.cluster_roll:roll",
        "Restart one broker after the other; stops at the first doubt.",
    ),
    "unregister": ("headrace.cli.cluster_members:unregister", "Forget a broker that has stopped for good."),
    "recover-metadata": (
        "headrace.cli.cluster_members:recover_metadata",
        "Write a broker's copy of the metadata into an empty ZooKeeper.",
    ),
    "init": ("headrace.cli.cluster_init:init", "Begin a cluster, with users that can log in to it."),
    "secure-zookeeper": (
        "headrace.cli.cluster_zookeeper:secure_zookeeper",
        "Give what a cluster keeps in ZooKeeper to its brokers alone.",
    ),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def cluster() -> None:
    """Begin a cluster, look at it; restart, drain, rebalance and recover it."""
