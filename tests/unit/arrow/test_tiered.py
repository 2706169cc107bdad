"""A topic out of a bucket, beside a list of what is in it."""

from __future__ import annotations

from dataclasses import replace
from struct import Struct
from uuid import UUID

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from headrace.arrow import tiered
from headrace.arrow.columns import Bounds
from headrace.arrow.options import wish
from headrace.arrow.partition_reader import PartitionReader, Reading
from headrace.arrow.schema import SCHEMA, to_batch, wanted_by
from headrace.arrow.tiered import Blocks, PinnedHistory, TierFailed, find_tiered
from headrace.core.ports_objects import Found, OutcomeUnknown, RangeOutcome
from headrace.protocol.records import NewRecord, Record
from headrace.testing.simulation.memory_objects import MemoryObjects
from headrace.tier.index_object import Aborted, Indexes
from headrace.tier.index_object import encode as encode_indexes
from headrace.tier.manifest import Manifest, Origin
from headrace.tier.manifest_format import decode, encode, encode_page, stored
from headrace.tier.names import Folder, ObjectName, TieredPartition
from headrace.tier.segments import EpochStart, PageRef, RemoteSegment, Stored, page_of
from tests.unit.arrow.drawn_logs import PRODUCERS, logs
from tests.unit.arrow.written_logs import PARTITION, WrittenLog, WrittenSegment

CLUSTER = "cluster"
ID = UUID(int=9)
TIERED = TieredPartition(ID, PARTITION.partition)
FOLDER = Folder.of(CLUSTER, TIERED)


def indexes_of(log: WrittenLog, segment: WrittenSegment, end: int) -> bytes:
    """As a broker makes them: the aborted transactions that have records in it."""
    base = segment.base_offset
    entries = [(base + relative, at) for relative, at in Struct(">ii").iter_unpack(segment.index)]
    aborted = [
        Aborted(producer, first, last, 0)
        for producer, first, last in log.aborted_transactions
        if first < end and last >= base
    ]
    return encode_indexes(Indexes(base, entries, (), aborted, None))


def uploaded(
    log: WrittenLog, *, folded: int = 0, start: int | None = None, indexed: bool = True
) -> MemoryObjects:
    """All sealed segments, the first `folded` of them listed by a page."""
    store = MemoryObjects(lambda: 0)
    sealed = []
    for segment, following in zip(log.segments, log.segments[1:], strict=False):
        name = ObjectName(segment.base_offset, 1, f"{segment.base_offset:032x}")
        content = bytes(segment.data)
        store.put(FOLDER.records(name), content, deadline_seconds=1)
        if indexed:
            indexes = indexes_of(log, segment, following.base_offset)
            store.put(FOLDER.indexes(name), indexes, deadline_seconds=1)
        epochs = (EpochStart(1, segment.base_offset),)
        records = Stored(len(content), crc32c(content))
        sealed.append(
            RemoteSegment(name, following.base_offset, records, Stored(0, 0), segment.max_timestamp, epochs)
        )
    first = log.start if start is None else start
    sealed = [each for each in sealed if each.next_offset > first]  # the others stay for a while, unnamed
    folded = min(folded, len(sealed))
    pages: tuple[PageRef, ...] = ()
    if folded:
        page = encode_page(TIERED, sealed[:folded])
        name = ObjectName(sealed[0].base_offset, 1, "f" * 32)
        store.put(FOLDER.page(name), page, deadline_seconds=1)
        pages = (page_of(name, sealed[:folded], stored(page)),)
    manifest = Manifest(TIERED, 1, UUID(int=1), 1, first, pages=pages, segments=tuple(sealed[folded:]))
    manifest.check()
    store.put(FOLDER.manifest, encode(manifest), deadline_seconds=1)
    return store


def read(store: MemoryObjects, **options: int) -> list[Record]:
    found = []
    for history in find_tiered(Blocks(store, 1.0), CLUSTER, PARTITION.topic, ID):
        bounds = wish(PARTITION.topic, **options).bounds(history.partition.partition)  # type: ignore[arg-type]  # numbers
        for block in PartitionReader(history, Reading(wanted_by(SCHEMA), bounds)).blocks():
            for row in to_batch(block, SCHEMA).to_pylist():
                headers = tuple((each["key"], each["value"]) for each in row["headers"])
                time = round(row["timestamp"].timestamp() * 1000)
                found.append(Record(row["offset"], time, row["key"], row["value"], headers))
    return found


def plain(segments: int) -> WrittenLog:
    log = WrittenLog()
    for _ in range(segments):
        for _ in range(5):
            log.append([NewRecord(b"v%d" % at, b"k", at) for at in (log.end, log.end + 1)])
        log.roll()
    return log


@given(logs(), st.integers(0, 3), st.booleans(), st.data())
def test_it_has_what_a_consumer_would_get(
    log: WrittenLog, folded: int, indexed: bool, data: st.DataObject
) -> None:
    for producer_id in PRODUCERS:  # only what is decided gets there
        log.end_transaction(producer_id, commit=data.draw(st.booleans()))
    log.roll()
    start = data.draw(st.integers(log.start, log.end))
    store = uploaded(log, folded=folded, indexed=indexed)
    assert read(store, start=start) == [record for record in log.visible if record.offset >= start]


def test_blocks_that_end_within_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiered, "BLOCK_BYTES", 37)
    assert [each.offset for each in read(uploaded(plain(2)))] == list(range(20))


def test_segments_that_are_too_old_are_not_fetched() -> None:
    store = uploaded(plain(3), folded=2)
    for name in (0, 10):
        store.delete(FOLDER.records(ObjectName(name, 1, f"{name:032x}")), deadline_seconds=1)
    assert [each.offset for each in read(store, start_time=25)] == list(range(25, 30))
    with pytest.raises(TierFailed, match="is not in the store any more"):
        read(store, start_time=15)


def test_a_start_within_a_segment() -> None:
    assert [each.offset for each in read(uploaded(plain(2), start=3))] == list(range(3, 20))


class Silent(MemoryObjects):
    """Answers each range at the third time only, or never."""

    def __init__(self, other: MemoryObjects, patience: int) -> None:
        super().__init__(lambda: 0)
        self._stored = other._stored
        self._patience = patience
        self.asked: dict[int, int] = {}

    def get_range(self, key: str, start: int, length: int, *, deadline_seconds: float) -> RangeOutcome:
        self.asked[start] = self.asked.get(start, 0) + 1
        if self.asked[start] < self._patience:
            return OutcomeUnknown("no answer")
        return super().get_range(key, start, length, deadline_seconds=deadline_seconds)


def test_a_store_that_does_not_answer() -> None:
    store = uploaded(plain(1))
    assert len(read(Silent(store, 3))) == 10
    with pytest.raises(TierFailed, match=r"\.log cannot be read: no answer"):
        read(Silent(store, 9))


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(TierFailed, match="there is no history of topic orders below cluster/"):
        read(MemoryObjects(lambda: 0))
    store = uploaded(plain(1))
    store.put(FOLDER.manifest, b"{}", deadline_seconds=1)
    with pytest.raises(TierFailed, match="the history cannot be read: "):
        read(store)


def test_a_transaction_whose_end_is_not_there_yet() -> None:
    log = plain(1)
    log.append([NewRecord(b"open")], producer_id=7, transactional=True)
    log.append([NewRecord(b"behind")])
    log.roll()
    log.end_transaction(7, commit=True)
    assert [each.offset for each in read(uploaded(log, indexed=False))] == list(range(10))


def test_the_index_of_a_segment_says_what_was_given_up() -> None:
    """Without a look at the markers, which are in another segment."""
    log = WrittenLog()
    log.append([NewRecord(b"given up")] * 2, producer_id=7, transactional=True)
    log.append([NewRecord(b"kept")], producer_id=8, transactional=True)
    log.roll()
    log.end_transaction(7, commit=False)
    log.append([NewRecord(b"later")], producer_id=7, transactional=True)
    log.end_transaction(7, commit=True)
    log.end_transaction(8, commit=True)
    log.roll()
    store = uploaded(log)
    store.put(FOLDER.records(ObjectName(3, 1, f"{3:032x}")), b"", deadline_seconds=1)
    (history,) = find_tiered(Blocks(store, 1.0), CLUSTER, PARTITION.topic, ID)
    only = Reading(wanted_by(SCHEMA), Bounds(0, 3))
    (block,) = PartitionReader(history, only).blocks()
    assert to_batch(block, SCHEMA)["value"].to_pylist() == [b"kept"]
    assert [each.offset for each in read(uploaded(log))] == [2, 4]


def test_a_reader_that_begins_within_a_segment_begins_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiered, "BLOCK_BYTES", 64)
    store = Silent(uploaded(plain(1)), 1)
    assert [each.offset for each in read(store, start=8)] == [8, 9]
    assert min(store.asked) >= 64, "the segment was read from its beginning"


def test_a_fork_has_its_objects_in_two_folders() -> None:
    """Also for a task that was only told which segments it is to read."""
    log = plain(3)
    store = uploaded(log)
    own = TieredPartition(UUID(int=10), PARTITION.partition)
    folder = Folder.of(CLUSTER, own)
    known = store.get(FOLDER.manifest, deadline_seconds=1)
    assert isinstance(known, Found)
    origin = decode(known.data, TIERED)
    last = origin.segments[-1].name
    for key, new in (
        (FOLDER.records(last), folder.records(last)),
        (FOLDER.indexes(last), folder.indexes(last)),
    ):
        content = store.get(key, deadline_seconds=1)
        assert isinstance(content, Found)
        store.put(new, content.data, deadline_seconds=1)
        store.delete(key, deadline_seconds=1)
    fork = replace(origin, partition=own, origin=Origin(ID, last.base_offset))
    store.put(folder.manifest, encode(fork), deadline_seconds=1)
    blocks = Blocks(store, 1.0)
    (history,) = find_tiered(blocks, CLUSTER, "fork", own.topic_id)
    told = tuple(history.listed(Bounds()))
    for each in (history, PinnedHistory(blocks, PARTITION, told)):
        reader = PartitionReader(each, Reading(wanted_by(SCHEMA), Bounds(4)))
        batches = [to_batch(block, SCHEMA) for block in reader.blocks()]
        offsets = [offset for batch in batches for offset in batch["offset"].to_pylist()]
        assert offsets == list(range(4, 30))


def test_a_damaged_index_is_said() -> None:
    store = uploaded(plain(1))
    store.put(FOLDER.indexes(ObjectName(0, 1, "0" * 32)), b"{}", deadline_seconds=1)
    with pytest.raises(TierFailed, match=r"\.idx is damaged: "):
        read(store, start=8)
