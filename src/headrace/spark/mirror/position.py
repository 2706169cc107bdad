"""How far a mirror is. It is the note of its sink's decisions: it moves with the batch, or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.mirror.problems import MirrorRefused

_VERSION: Final = 1


@dataclass(frozen=True)
class TopicPosition:
    id: str
    """Of the source's topic: one that was deleted and made anew has another."""
    target: str
    target_id: str
    offsets: tuple[int, ...]
    """Of the source, by partition: what is mirrored next."""


@dataclass(frozen=True)
class Position:
    source: str = ""
    """The id of the cluster; empty before the first batch."""
    target: str = ""
    number: int = 0
    """Of the last batch."""
    topics: Mapping[str, TopicPosition] = field(default_factory=dict)

    def offsets(self) -> Offsets:
        return {
            (name, partition): offset
            for name, topic in self.topics.items()
            for partition, offset in enumerate(topic.offsets)
        }

    def ids(self) -> dict[str, str]:
        return {name: topic.id for name, topic in self.topics.items()}

    def at(self, topic: str, partition: int) -> int | None:
        offsets = self.topics[topic].offsets if topic in self.topics else ()
        return offsets[partition] if partition < len(offsets) else None

    def moved(self, ends: Offsets) -> Position:
        """Behind the next batch, which ends there."""
        topics = {
            name: replace(
                topic, offsets=tuple(ends.get((name, index), at) for index, at in enumerate(topic.offsets))
            )
            for name, topic in self.topics.items()
        }
        return replace(self, number=self.number + 1, topics=topics)

    def with_topics(self, topics: Mapping[str, TopicPosition]) -> Position:
        """Adopted, or grown."""
        return replace(self, number=self.number + 1, topics={**self.topics, **topics})

    def text(self) -> str:
        topics = {
            name: {"id": topic.id, "to": topic.target, "to_id": topic.target_id, "at": topic.offsets}
            for name, topic in sorted(self.topics.items())
        }
        return json.dumps(
            {
                "version": _VERSION,
                "number": self.number,
                "source": self.source,
                "target": self.target,
                "topics": topics,
            },
            separators=(",", ":"),
        )


def position_of(text: str | None) -> Position:
    """Where nothing is written yet, an empty one."""
    if text is None:
        return Position()
    try:
        document = json.loads(text)
        if document["version"] != _VERSION:
            raise MirrorRefused(
                f"the mirror's position has version {document['version']}, and {_VERSION} is known here: use "
                "the Headrace that wrote it, or a newer one"
            )
        topics = {
            name: TopicPosition(each["id"], each["to"], each["to_id"], tuple(each["at"]))
            for name, each in document["topics"].items()
        }
        return Position(document["source"], document["target"], document["number"], topics)
    except (ValueError, KeyError, TypeError) as error:
        raise MirrorRefused(
            f"what is noted under the mirror's name is not a mirror's position ({error!r}): something else "
            "writes with this sink.id. Give the mirror another name"
        ) from None
