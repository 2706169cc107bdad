"""The topics of a Metadata answer about everything, each encoded once for as long as it stays the same.

A cluster of 100,000 partitions takes seconds to describe, and all its clients ask when one broker fails. So
topics are encoded in slices, what was encoded is kept by topic and version, and a change of some topics costs
those alone.

Clients of different rights share what is kept, so it says nothing of them: which topics a client is told of,
and what it may do with each, is put in when its answer is put together.
"""

from __future__ import annotations

import asyncio
from struct import Struct
from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.requests.allowed_operations import NOT_ASKED
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
    Operations = Callable[[str], int]

KEPT_FORMS: Final = 4
"""Versions: clients of one kind ask alike."""
_FIELDS: Final = ("topics", "partitions")
_OPERATIONS: Final = Struct(">i")
_FIRST_WITH_TAGS: Final = 9


class MetadataRows:
    def __init__(self, runtime: Runtime, metadata: MetadataCache) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._forms: dict[int, dict[str, bytes]] = {}
        """By version and name. What a client may do is NOT_ASKED in all of them."""
        self._whole: dict[tuple[int, int], EncodedRows] = {}
        """All topics, by version and what may be done with every one of them."""
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
        self, version: int, operations: int, describe: Describe, describe_partition: DescribePartition
    ) -> EncodedRows:
        """For a client that may do the same with every topic. `describe` gives a topic without its
        partitions. The rows may be sent by several at once."""
        async with self._building:  # who comes second finds what the first has encoded
            known = self._whole.get((version, operations))
            return known or await self._build(version, operations, describe, describe_partition)

    async def some(
        self,
        version: int,
        operations: Operations | None,
        topics: Sequence[TopicImage | MetadataResponseTopic],
        describe: Describe,
        describe_partition: DescribePartition,
    ) -> EncodedRows:
        """These, in their order; those that do not exist are described already. `operations`: what the client
        may do with a topic, if it asks for that."""
        turns = self._runtime.turns
        encoded: list[bytes] = []
        for topic in topics:
            if turns.is_over:
                await turns.next()
            if isinstance(topic, Structure):
                writer = Writer()
                topic.encode(writer, version)
                encoded.append(writer.getvalue())
                continue
            row = self._form(version).get(topic.name)
            row = row or await self._encode(version, topic, describe, describe_partition)
            if operations is not None:
                row = with_operations(row, version, operations(topic.name))
            encoded.append(row)
        return EncodedRows(len(encoded), b"".join(encoded))

    async def _build(
        self, version: int, operations: int, describe: Describe, describe_partition: DescribePartition
    ) -> EncodedRows:
        changes, turns, image = self._changes, self._runtime.turns, self._metadata.image
        encoded: list[bytes] = []
        for name in list(image.topics_by_name):
            if turns.is_over:
                await turns.next()
            topic = self._metadata.image.topic(name)
            if topic is None:
                continue  # deleted meanwhile
            row = self._form(version).get(name)
            if row is None:
                row = await self._encode(version, topic, describe, describe_partition)
            encoded.append(row if operations == NOT_ASKED else with_operations(row, version, operations))
        rows = EncodedRows(len(encoded), b"".join(encoded))
        if changes == self._changes:
            self._whole[version, operations] = rows
        return rows

    async def _encode(
        self, version: int, topic: TopicImage, describe: Describe, describe_partition: DescribePartition
    ) -> bytes:
        changes, turns = self._changes, self._runtime.turns
        row = describe(topic)
        rows = Rows(_FIELDS, version)
        for _ in rows.add([row]):
            pass
        for index in range(len(topic)):
            for _ in rows.add_within([describe_partition(topic, index)]):
                pass
            if turns.is_over:
                await turns.next()
        written = rows.take().written
        if changes == self._changes:
            self._form(version)[topic.name] = written
        return written

    def _form(self, version: int) -> dict[str, bytes]:
        form = self._forms.get(version)
        if form is None:
            if len(self._forms) >= KEPT_FORMS:
                self._forms.pop(next(iter(self._forms)))
            form = self._forms[version] = {}
        return form


def with_operations(row: bytes, version: int, operations: int) -> bytes:
    """The same topic with other operations, which are its last field, before the tags. It has no tags."""
    end = len(row) - (version >= _FIRST_WITH_TAGS)
    return b"".join((memoryview(row)[: end - _OPERATIONS.size], _OPERATIONS.pack(operations), row[end:]))
