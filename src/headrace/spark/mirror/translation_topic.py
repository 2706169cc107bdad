"""The compacted topic of translations: read to its end, and its small pieces merged.

Tasks write pieces in the transactions of their records (`frames.py`), so a piece is there when its records
are. Merges have a transactional id of their own, which the run that begins takes: an older one could put back
what it still believes, and must not. So has what is remembered of rights.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer
from headrace.client.errors import Refused
from headrace.client.offsets import EARLIEST, LATEST, list_offsets
from headrace.client.transaction_ends import Identity, Patience, end, take
from headrace.client.transactional_producer import Records, TransactionalProducer
from headrace.core.ids import TopicPartition
from headrace.protocol.batch import HEADER_SIZE
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.records import NewRecord, encode_batch
from headrace.spark.mirror.problems import MirrorRefused
from headrace.spark.mirror.translation import Merge, Place, Translation, encode_key, record_of
from headrace.spark.sink import decisions

_MERGING_MS: Final = 60_000
_PATIENCE_SECONDS: Final = 60.0


class TranslationTopic:
    """What it says is in `translation` after each `refresh`."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.translation = Translation()
        self._cluster = cluster
        self._partition = TopicPartition(topic, 0)
        self._position = -1

    async def refresh(self) -> None:
        """Read what lies there now, also what is just being committed."""
        found = await list_offsets(self._cluster, {self._partition: LATEST})
        last = found[self._partition].offset
        if self._position < 0:
            first = await list_offsets(self._cluster, {self._partition: EARLIEST})
            self._position = first[self._partition].offset
        if self._position >= last:
            return
        consumer = Consumer(self._cluster, {self._partition: self._position}, max_wait_ms=100)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while consumer.positions[self._partition] < last:
                    for fetched in await consumer.poll():
                        for record in fetched.records:
                            self.translation.put(record.key, record.value)
        except TimeoutError:
            raise MirrorRefused(
                f"topic {self._partition.topic} cannot be read to its end: a transaction in it is open. Its "
                "mirror died in the middle of a batch; start it again, which ends the batch"
            ) from None
        finally:
            await consumer.close()
        self._position = consumer.positions[self._partition]


class Merger:
    """Of the run that took the id last."""

    def __init__(self, cluster: Cluster, topic: str, name: str) -> None:
        self._cluster = cluster
        self._partition = TopicPartition(topic, 0)
        self._id = f"headrace-mirror/{name}/merges"
        self._identity: Identity | None = None

    async def begin(self) -> None:
        """No older run merges from now on. The topic is read after this."""
        self._identity = await take(self._cluster, self._id, Patience(_MERGING_MS))

    async def merge(self, place: Place, merge: Merge) -> None:
        now_ms = int(time.time() * 1000)
        records = [record_of(piece, now_ms) for piece in merge.merged]
        records += [NewRecord(None, encode_key(place, first), now_ms) for first in merge.removed]
        await self.write(records)

    async def write(self, records: Iterable[NewRecord]) -> None:
        """All of them or none."""
        assert self._identity is not None, "begin comes first"
        patience = Patience(_MERGING_MS)
        try:
            self._identity = await take(self._cluster, self._id, patience, held=self._identity)
        except Refused as error:
            if error.code not in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH):
                raise
            raise MirrorRefused(
                "another run of this mirror has begun: this one stops. If both are meant to run, give each a "
                "name of its own"
            ) from None
        producer = TransactionalProducer(self._cluster, self._identity)
        try:
            for record in records:
                payload = bytes(encode_batch([record])[HEADER_SIZE:])
                await producer.send(self._partition, Records(payload, 1, record.timestamp, record.timestamp))
            await producer.flush()
        finally:
            await producer.stop()
        await end(self._cluster, self._identity, commit=True)


async def prepare(cluster: Cluster, topic: str) -> None:
    await decisions.prepare(cluster, topic, holds="translated offsets of a mirror")
