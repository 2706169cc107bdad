"""What all operations on consumer groups share."""

from __future__ import annotations

from headrace.coordinators.shard import Timers
from headrace.core.ports import Random
from headrace.groups.consumer.topic_lookups import TopicLookups
from headrace.groups.group_config import GroupConfig
from headrace.groups.group_table import GroupTable


class Context:
    __slots__ = ("config", "groups", "hashes", "patterns", "random", "timers", "topics")

    def __init__(
        self, groups: GroupTable, timers: Timers, lookups: TopicLookups, config: GroupConfig, random: Random
    ) -> None:
        self.groups = groups
        self.timers = timers
        self.topics = lookups.topics
        self.config = config
        self.random = random
        self.hashes = lookups.hashes
        self.patterns = lookups.patterns

    @property
    def default_assignor(self) -> str:
        return self.config.group_consumer_assignors[0]
