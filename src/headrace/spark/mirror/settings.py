"""Which settings of a topic its mirror has. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headrace.client.configs import ConfigEntry, ConfigSource

NOT_CARRIED: Final = frozenset(
    (
        # Of a cluster and its brokers, and not of the topic.
        "min.insync.replicas",
        "unclean.leader.election.enable",
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "remote.storage.enable",
        "local.retention.ms",
        "local.retention.bytes",
        # Records keep their times. These would write others, or refuse old ones.
        "message.timestamp.type",
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
        "message.timestamp.difference.max.ms",
    )
)
ANY_TIME: Final = {
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}
"""For topics that the mirror makes: records come with the times that they have, also where the source allows
more than the target's brokers do by themselves. Brokers before 3.6 do not know the last two."""
_LARGEST: Final = "max.message.bytes"
_SINK_BATCH: Final = 1_000_000
"""The sink writes batches of its own, which a topic for small ones would refuse."""


def carried(entries: Iterable[ConfigEntry]) -> dict[str, str]:
    """What somebody has set on the topic."""
    found = {}
    for entry in entries:
        if entry.source != ConfigSource.TOPIC or entry.value is None or entry.name in NOT_CARRIED:
            continue
        if entry.name == _LARGEST and int(entry.value) < _SINK_BATCH:
            continue
        found[entry.name] = entry.value
    return found


def initial(source: Iterable[ConfigEntry]) -> dict[str, str]:
    return carried(source)


def changes(source: Iterable[ConfigEntry], target: Iterable[ConfigEntry]) -> dict[str, str | None]:
    """What to set on the target, and what to take away."""
    wanted, there = carried(source), carried(target)
    changed: dict[str, str | None] = {
        name: value for name, value in wanted.items() if there.get(name) != value
    }
    changed.update({name: None for name in there if name not in wanted})
    return changed
