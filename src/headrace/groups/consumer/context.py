"""What all operations on consumer groups share."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.coordinators.shard import Timers
from headrace.core.ports import Random
from headrace.groups.consumer.topic_lookups import TopicLookups
from headrace.groups.group_config import GroupConfig
from headrace.groups.group_table import GroupTable


class Context:
    __slots__ = ("_own", "config", "groups", "hashes", "patterns", "random", "timers", "topics")

    def __init__(
        self,
        groups: GroupTable,
        timers: Timers,
        lookups: TopicLookups,
        config: GroupConfig,
        random: Random,
        own: Mapping[str, GroupConfig],
    ) -> None:
        """`own`: of groups that have settings of their own, by id; it changes while they are in use."""
        self.groups = groups
        self.timers = timers
        self.topics = lookups.topics
        self.config = config
        self.random = random
        self._own = own
        self.hashes = lookups.hashes
        self.patterns = lookups.patterns

    def config_of(self, group_id: str) -> GroupConfig:
        return self._own.get(group_id, self.config)

    @property
    def default_assignor(self) -> str:
        return self.config.group_consumer_assignors[0]
