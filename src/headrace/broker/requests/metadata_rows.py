"""The topics of a Metadata answer about everything, each encoded once for as long as it stays the same.

A cluster of 100,000 partitions takes seconds to describe, and all its clients ask when one broker fails. So
topics are encoded in slices, what was encoded is kept by topic and version, and a change of some topics costs
those alone.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.requests.long_answers import EncodedRows, Rows
from headrace.broker.runtime.runtime import Runtime
from headrace.controller.delta import MetadataDelta
from headrace.protocol.message import Structure
from headrace.protocol.primitives import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headrace.controller.topic_image import TopicImage
    from headrace.protocol.messages.metadata_response import (
        MetadataResponsePartition,
        MetadataResponseTopic,
    )

    Describe = Callable[[TopicImage], MetadataResponseTopic]
    DescribePartition = Callable[[TopicImage, int], MetadataResponsePartition]

KEPT_FORMS: Final = 4
"""Versions, with and without the operations that are allowed: clients of one kind ask alike."""
_FIELDS: Final = ("topics", "partitions")


class MetadataRows:
    def __init__(self, runtime: Runtime, metadata: MetadataCache) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._forms: dict[tuple[int, bool], dict[str, bytes]] = {}
        self._whole: dict[tuple[int, bool], EncodedRows] = {}
        self._changes = 0
        self._building = asyncio.Lock()
        metadata.store.subscribe(self.on_delta)

    def on_delta(self, delta: MetadataDelta) -> None:
        if delta.brokers:
            self.clear()  # who is alive is said of each replica
            return
        names = {topic.name for topic in delta.removed_topics}
        for topic_id in (*delta.created_topics, *delta.partitions):
            topic = self._metadata.image.topic_by_id(topic_id)
            if topic is not None:
                names.add(topic.name)
        if names:
            self._changes += 1
            self._whole.clear()
            for form in self._forms.values():
                for name in names:
                    form.pop(name, None)

    def clear(self) -> None:
        self._changes += 1
        self._whole.clear()
        self._forms.clear()

    async def all(
        self, version: int, operations: bool, describe: Describe, describe_partition: DescribePartition
    ) -> EncodedRows:
        """`describe` gives a topic without its partitions. The rows may be sent by several at once."""
        key = (version, operations)
        async with self._building:  # who comes second finds what the first has encoded
            known = self._whole.get(key)
            return known or await self._build(key, describe, describe_partition)

    async def some(
        self,
        version: int,
        operations: bool,
        topics: Sequence[TopicImage | MetadataResponseTopic],
        describe: Describe,
        describe_partition: DescribePartition,
    ) -> EncodedRows:
        """These, in their order; those that do not exist are described already."""
        key = (version, operations)
        encoded: list[bytes] = []
        for topic in topics:
            if isinstance(topic, Structure):
                writer = Writer()
                topic.encode(writer, version)
                encoded.append(writer.getvalue())
                continue
            kept = self._form(key).get(topic.name)
            encoded.append(kept or await self._encode(key, topic, describe, describe_partition))
        return EncodedRows(len(encoded), b"".join(encoded))

    async def _build(
        self, key: tuple[int, bool], describe: Describe, describe_partition: DescribePartition
    ) -> EncodedRows:
        changes, turns, image = self._changes, self._runtime.turns, self._metadata.image
        encoded: list[bytes] = []
        for name in list(image.topics_by_name):
            if turns.is_over:
                await turns.next()
            topic = self._metadata.image.topic(name)
            if topic is None:
                continue  # deleted meanwhile
            kept = self._form(key).get(name)
            if kept is None:
                kept = await self._encode(key, topic, describe, describe_partition)
            encoded.append(kept)
        rows = EncodedRows(len(encoded), b"".join(encoded))
        if changes == self._changes:
            self._whole[key] = rows
        return rows

    async def _encode(
        self,
        key: tuple[int, bool],
        topic: TopicImage,
        describe: Describe,
        describe_partition: DescribePartition,
    ) -> bytes:
        changes, turns = self._changes, self._runtime.turns
        row = describe(topic)
        rows = Rows(_FIELDS, key[0])
        for _ in rows.add([row]):
            pass
        for index in range(len(topic)):
            for _ in rows.add_within([describe_partition(topic, index)]):
                pass
            if turns.is_over:
                await turns.next()
        written = rows.take().written
        if changes == self._changes:
            self._form(key)[topic.name] = written
        return written

    def _form(self, key: tuple[int, bool]) -> dict[str, bytes]:
        form = self._forms.get(key)
        if form is None:
            if len(self._forms) >= KEPT_FORMS:
                self._forms.pop(next(iter(self._forms)))
            form = self._forms[key] = {}
        return form
