"""A linked topic as the metadata knows it: where its records come from, and how far its promotion is.

It is a config resource of our own type, `ResourceType.LINK`, under the name of the topic. Its values are
Kafka's ConfigRecord, so a link is in every broker's image, in checkpoints, and readable by `kafka-dump-log`.
Whoever may alter the configs of the topic may not alter its link: that is a right on the cluster.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, TypeVar
from uuid import UUID

K = TypeVar("K")
V = TypeVar("V")

BOOTSTRAP: Final = "source.bootstrap.servers"
CLIENT_CONFIG: Final = "source.client.config"
SOURCE_TOPIC: Final = "source.topic"
SOURCE_TOPIC_ID: Final = "source.topic.id"
SOURCE_CLUSTER_ID: Final = "source.cluster.id"
GROUPS: Final = "groups"
STATE: Final = "state"
STOPPED: Final = "stopped."
"""And a partition: why it is copied no more."""
OPENED: Final = "opened."
"""And a partition: the offset from which on its records are this cluster's own."""


class LinkState(StrEnum):
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    PROMOTING = "PROMOTING"
    PROMOTED = "PROMOTED"


class Link:
    """Only replay changes it."""

    __slots__ = ("opened", "state", "stopped", "values")

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.state = LinkState.PAUSED
        self.stopped: dict[int, str] = {}
        self.opened: dict[int, int] = {}
        """Invariant: an entry is never changed, and goes only with the topic."""

    def apply(self, name: str, value: str | None) -> None:
        if name.startswith(STOPPED):
            _put(self.stopped, int(name.removeprefix(STOPPED)), value)
        elif name.startswith(OPENED):
            offset = None if value is None else int(value)
            _put(self.opened, int(name.removeprefix(OPENED)), offset)
        elif name == STATE:
            self.state = LinkState.PAUSED if value is None else LinkState(value)
        else:
            _put(self.values, name, value)

    @property
    def bootstrap(self) -> str:
        return self.values.get(BOOTSTRAP, "")

    @property
    def client_config(self) -> str | None:
        return self.values.get(CLIENT_CONFIG)

    @property
    def source_topic(self) -> str:
        return self.values.get(SOURCE_TOPIC, "")

    @property
    def source_topic_id(self) -> UUID:
        return UUID(self.values[SOURCE_TOPIC_ID])

    @property
    def groups(self) -> list[str]:
        return [each.strip() for each in self.values.get(GROUPS, "").split(",") if each.strip()]

    def is_sealed(self, partition: int) -> bool:
        """Whether producers of this cluster may not write to it."""
        return partition not in self.opened and self.state != LinkState.PROMOTED

    def copies(self, partition: int) -> bool:
        """Whether its leader shall fetch from the source."""
        return self.state == LinkState.ACTIVE and partition not in self.stopped

    def aborts(self, partition: int) -> bool:
        """Whether its leader shall end what is open, and open it."""
        return self.state == LinkState.PROMOTING and partition not in self.opened


def _put(values: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        values.pop(key, None)
    else:
        values[key] = value
