"""What all operations on consumer groups share."""

from __future__ import annotations

from headrace.coordinators.shard import Timers
from headrace.core.ports import Random
from headrace.groups.consumer.metadata_hash import TopicHashes
from headrace.groups.consumer.regexes import TopicPatterns
from headrace.groups.group_config import GroupConfig
from headrace.groups.group_table import GroupTable
from headrace.groups.topics_view import TopicsView


class Context:
    __slots__ = ("config", "groups", "hashes", "patterns", "random", "timers", "topics")

    def __init__(
        self, groups: GroupTable, timers: Timers, topics: TopicsView, config: GroupConfig, random: Random
    ) -> None:
        self.groups = groups
        self.timers = timers
        self.topics = topics
        self.config = config
        self.random = random
        self.hashes = TopicHashes(topics)
        self.patterns = TopicPatterns(topics)

    @property
    def default_assignor(self) -> str:
        return self.config.group_consumer_assignors[0]
