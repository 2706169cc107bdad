"""A partition in an object store: what its manifest names is there, and committed."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, TypeVar
from uuid import UUID

from headrace.arrow.columns import Bounds
from headrace.arrow.errors import HistoryGone
from headrace.arrow.history import ListedSegment, OpenSegment
from headrace.client.errors import ClientFailure
from headrace.core.ids import TopicPartition
from headrace.core.ports_objects import Absent, Found, Listing, ObjectStore, OutcomeUnknown, Part
from headrace.protocol.batch import BatchHeader
from headrace.tier.calls import Steps, carry_out
from headrace.tier.index_object import CorruptIndexes, Indexes, decode
from headrace.tier.knowledge import Failed, Unusable
from headrace.tier.manifest import Manifest
from headrace.tier.names import INDEXES, RECORDS, Folder, TieredPartition, encode_id
from headrace.tier.segments import PageRef, RemoteSegment
from headrace.tier.writing import read, read_page

BLOCK_BYTES: Final = 4 * 1024 * 1024
_BLOCKS: Final = 4
"""That are kept: of the reader, and of the look ahead at markers."""
_ATTEMPTS: Final = 3
_REACH: Final = "check the network and the store, and begin again"

_Read = TypeVar("_Read")


class TierFailed(ClientFailure):
    """The store gave no answer that helps."""


class Blocks:
    """Ranges of objects, the last ones of which stay in memory."""

    def __init__(self, store: ObjectStore, deadline_seconds: float) -> None:
        self.store = store
        self.deadline_seconds = deadline_seconds
        self._kept: OrderedDict[tuple[str, int], memoryview] = OrderedDict()

    def get(self, key: str, number: int, size: int) -> memoryview:
        found = self._kept.pop((key, number), None)
        if found is None:
            start = number * BLOCK_BYTES
            found = self._load(key, start, min(BLOCK_BYTES, size - start))
        self._kept[key, number] = found
        if len(self._kept) > _BLOCKS:
            self._kept.popitem(last=False)
        return found

    def whole(self, key: str) -> bytes | None:
        """None if there is no such object."""
        reason = ""
        for _ in range(_ATTEMPTS):
            outcome = self.store.get(key, deadline_seconds=self.deadline_seconds)
            if isinstance(outcome, Found | Absent):
                return outcome.data if isinstance(outcome, Found) else None
            reason = outcome.reason
            if not isinstance(outcome, OutcomeUnknown):
                break
        raise TierFailed(f"{key} cannot be read: {reason}", _REACH)

    def _load(self, key: str, start: int, length: int) -> memoryview:
        reason = ""
        for _ in range(_ATTEMPTS):
            outcome = self.store.get_range(key, start, length, deadline_seconds=self.deadline_seconds)
            if isinstance(outcome, Part):
                return memoryview(outcome.data)
            if isinstance(outcome, Absent):
                raise TierFailed(
                    f"{key} is not in the store any more",
                    "retention may have been faster than the reader: begin again",
                )
            reason = outcome.reason
            if not isinstance(outcome, OutcomeUnknown):
                break
        raise TierFailed(f"{key} cannot be read: {reason}", _REACH)


class _ObjectFile:
    def __init__(self, blocks: Blocks, key: str, size: int) -> None:
        self._blocks = blocks
        self._key = key
        self._size = size

    def pread(self, length: int, position: int) -> bytes:
        end = min(position + length, self._size)
        parts = []
        while position < end:
            number, at = divmod(position, BLOCK_BYTES)
            part = self._blocks.get(self._key, number, self._size)[at : at + end - position]
            if not part:
                break  # the object is shorter than it was: whoever reads says so
            parts.append(part)
            position += len(part)
        return b"".join(parts)


class ObjectSegment:
    """Its indexes are fetched where they help: for a reader that begins within it, and for transactions."""

    def __init__(self, blocks: Blocks, listed: ListedSegment, latest_ms: int | None = None) -> None:
        self._blocks = blocks
        self._listed = listed
        self.base_offset = listed.base_offset
        self.next_offset: int | None = listed.next_offset
        self.size = listed.size
        self.latest_ms = latest_ms
        self.name = f"{listed.stem}{RECORDS}"
        self.file = _ObjectFile(blocks, self.name, listed.size)

    @cached_property
    def _indexes(self) -> Indexes | None:
        """None for a segment that was put there without."""
        key = f"{self._listed.stem}{INDEXES}"
        content = self._blocks.whole(key)
        try:
            return None if content is None else decode(content, self.base_offset)
        except CorruptIndexes as error:
            raise TierFailed(
                f"{key} is damaged: {error}", "restore the object, or read the brokers"
            ) from None

    @cached_property
    def _aborted(self) -> dict[int, list[tuple[int, int]]] | None:
        """Of each producer the first and last offsets of the transactions that were given up, in order."""
        if self._indexes is None:
            return None
        found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for each in sorted(self._indexes.aborted, key=lambda each: each.first_offset):
            found[each.producer_id].append((each.first_offset, each.last_offset))
        return found

    def position_of(self, offset: int) -> int:
        if offset <= self.base_offset or self._indexes is None:
            return 0
        return self._indexes.position_before(offset)

    def is_aborted(self, header: BatchHeader) -> bool | None:
        """What is in a bucket is decided, and a segment's index has all that was given up in it."""
        if self._aborted is None:
            return None
        ranges = self._aborted.get(header.producer_id, [])
        place = bisect_right(ranges, header.base_offset, key=lambda each: each[0])
        return place > 0 and header.base_offset <= ranges[place - 1][1]

    def close(self) -> None:
        pass


def _listing_of(folder: Folder, segment: RemoteSegment) -> ListedSegment:
    return ListedSegment(segment.base_offset, segment.next_offset, segment.size, folder.stem(segment.name))


class TieredHistory:
    def __init__(self, blocks: Blocks, folder: Folder, partition: TopicPartition, manifest: Manifest) -> None:
        self._blocks = blocks
        self._folder = folder
        self._manifest = manifest
        self._page: tuple[PageRef, Sequence[RemoteSegment]] | None = None
        self.partition = partition
        self.start = manifest.start
        self.end = manifest.next_offset

    def stable_end(self, first: int) -> int:  # noqa: ARG002 - only what is decided gets there
        return self.end

    def open_at(self, offset: int) -> OpenSegment:
        for each in self._manifest.ranges:
            if each.base_offset <= offset < each.next_offset:
                listed = self._listed(each) if isinstance(each, PageRef) else (each,)
                found = next(one for one in listed if offset < one.next_offset)
                latest = found.max_timestamp if found.max_timestamp >= 0 else None
                return ObjectSegment(self._blocks, _listing_of(self._folder, found), latest)
        raise HistoryGone(self.partition, offset, self.start)

    def listed(self, bounds: Bounds) -> Iterator[ListedSegment]:
        first = max(self.start, bounds.first_offset)

        def may_have(each: RemoteSegment | PageRef) -> bool:
            is_old = 0 <= each.max_timestamp < bounds.first_ms
            return first < each.next_offset and each.base_offset < bounds.next_offset and not is_old

        for each in filter(may_have, self._manifest.ranges):
            segments = self._listed(each) if isinstance(each, PageRef) else (each,)
            for segment in filter(may_have, segments):
                yield _listing_of(self._folder, segment)

    def _listed(self, page: PageRef) -> Sequence[RemoteSegment]:
        if self._page is None or self._page[0] != page:
            steps = read_page(self._folder, self._manifest.partition, page)
            self._page = page, _carried_out(self._blocks, steps)
        return self._page[1]


class PinnedHistory:
    """Segments that were listed before. Their objects stay for some time after the manifest names them no
    more, so that whoever has begun to read can end."""

    def __init__(self, blocks: Blocks, partition: TopicPartition, segments: Sequence[ListedSegment]) -> None:
        self._blocks = blocks
        self._segments = segments
        self.partition = partition
        self.start = segments[0].base_offset
        self.end = segments[-1].next_offset

    def stable_end(self, first: int) -> int:  # noqa: ARG002 - only what is decided gets there
        return self.end

    def open_at(self, offset: int) -> OpenSegment:
        for each in self._segments:
            if offset < each.next_offset:
                return ObjectSegment(self._blocks, each)
        raise HistoryGone(self.partition, offset, self.start)

    def listed(self, bounds: Bounds) -> Iterator[ListedSegment]:
        for each in self._segments:
            if bounds.first_offset < each.next_offset and each.base_offset < bounds.next_offset:
                yield each


def _carried_out(blocks: Blocks, steps: Steps[_Read | Failed | Unusable]) -> _Read:
    done = carry_out(blocks.store, steps, blocks.deadline_seconds)
    if isinstance(done, Failed):
        raise TierFailed(f"the store did not give the manifest: {done.reason}", _REACH)
    if isinstance(done, Unusable):
        raise TierFailed(
            f"the history cannot be read: {done.reason}", "restore the object, or read the brokers"
        )
    return done


def find_tiered(
    blocks: Blocks, cluster_id: str, topic: str, topic_id: UUID, partitions: Sequence[int] | None = None
) -> list[TieredHistory]:
    """All partitions of a topic that have a manifest, or those that are asked for."""
    found = []
    for number in sorted(_numbers(blocks, cluster_id, topic_id) if partitions is None else partitions):
        tiered = TieredPartition(topic_id, number)
        folder = Folder.of(cluster_id, tiered)
        manifest = _carried_out(blocks, read(folder, tiered)).known.manifest
        if manifest is not None and not manifest.is_deleted:
            readable = manifest.readable(folder)
            found.append(TieredHistory(blocks, readable, TopicPartition(topic, number), manifest))
    if not found:
        raise TierFailed(
            f"there is no history of topic {topic} below {cluster_id}/{encode_id(topic_id)}/ in the store",
            "check the ids of cluster and topic, and that the topic has remote.storage.enable",
        )
    return found


def _numbers(blocks: Blocks, cluster_id: str, topic_id: UUID) -> set[int]:
    prefix = f"{cluster_id}/{encode_id(topic_id)}/"
    listing = blocks.store.list(prefix, deadline_seconds=blocks.deadline_seconds)
    if not isinstance(listing, Listing):
        raise TierFailed(f"the store does not list {prefix}: {listing.reason}", _REACH)
    names = (each.key.removeprefix(prefix).partition("/")[0] for each in listing.objects)
    return {int(name) for name in names if name.isdecimal()}
