"""What consumer groups look up in the topics, and remember while the metadata stays the same.

All shards of a broker may share one: then a change of the metadata costs each topic once, not once for each
shard.
"""

from __future__ import annotations

from headrace.groups.consumer.metadata_hash import TopicHashes
from headrace.groups.consumer.regexes import TopicPatterns
from headrace.groups.topics_view import TopicsView


class TopicLookups:
    __slots__ = ("hashes", "patterns", "topics")

    def __init__(self, topics: TopicsView, *, patterns_elsewhere: bool = False) -> None:
        self.topics = topics
        self.hashes = TopicHashes(topics)
        self.patterns = TopicPatterns(topics, elsewhere=patterns_elsewhere)
