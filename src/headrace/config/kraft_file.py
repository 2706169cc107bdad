"""Files that were written for Kafka's KRaft mode: they say by a quorum of controllers who is in the cluster.

There is no such quorum here. Without zookeeper.connect a broker is a cluster of its own, so that the brokers
of one such cluster would be as many clusters, each with its own data. A file that names others is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from headrace.core.errors import ConfigError

VOTERS = "controller.quorum.voters"
BOOTSTRAP = "controller.quorum.bootstrap.servers"

_LISTENER = re.compile(r"([^:]+)://(.*):([0-9]+)")


def check_quorum(
    mapping: Mapping[str, str], broker_id: int, addresses: Sequence[str], controllers: set[str]
) -> str | None:
    """For a broker without a ZooKeeper: a warning where the quorum is this broker alone, None without one.

    `addresses` are all items of listeners and advertised.listeners; `controllers`, in capitals, the names of
    those that Kafka's controllers would use.
    """
    named = None
    for name in (VOTERS, BOOTSTRAP):
        members = [item.strip() for item in mapping.get(name, "").split(",") if item.strip()]
        if not members:
            continue
        if len(members) > 1 or not _is_own(name, members[0], broker_id, addresses, controllers):
            raise ConfigError(
                f"{name}={mapping[name]} names others than this broker, and zookeeper.connect is not set: "
                "brokers form a cluster by ZooKeeper here, without it each is a cluster of its own; set "
                f"zookeeper.connect to the same in all of them, or remove {name} if this one shall be alone"
            )
        named = name
    if named is None:
        return None
    return (
        f"{named} names this broker alone, and zookeeper.connect is not set: it is a cluster of its own, and"
        " others cannot join it"
    )


def _is_own(name: str, member: str, broker_id: int, addresses: Sequence[str], controllers: set[str]) -> bool:
    if name == VOTERS:
        return member.partition("@")[0] == str(broker_id)
    host, _, port = member.rpartition(":")
    found = [match for match in map(_LISTENER.fullmatch, addresses) if match is not None]
    hosts = {match[2] for match in found if match[2]}
    ports = {match[3] for match in found if match[1].upper() in controllers}
    own_host = host in hosts or host in ("localhost", "[::1]") or host.startswith("127.")
    return own_host and port in ports
