"""A topic out of a bucket, beside a list of what is in it."""

from __future__ import annotations

from uuid import UUID

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from headrace.arrow import tiered
from headrace.arrow.options import wish
from headrace.arrow.partition_reader import PartitionReader, Reading
from headrace.arrow.schema import SCHEMA, to_batch, wanted_by
from headrace.arrow.tiered import Blocks, TierFailed, find_tiered
from headrace.core.ports_objects import OutcomeUnknown, RangeOutcome
from headrace.protocol.records import NewRecord, Record
from headrace.testing.simulation.memory_objects import MemoryObjects
from headrace.tier.manifest import Manifest
from headrace.tier.manifest_format import encode, encode_page, stored
from headrace.tier.names import Folder, ObjectName, TieredPartition
from headrace.tier.segments import EpochStart, PageRef, RemoteSegment, Stored, page_of
from tests.unit.arrow.drawn_logs import PRODUCERS, logs
from tests.unit.arrow.written_logs import PARTITION, WrittenLog

CLUSTER = "cluster"
ID = UUID(int=9)
TIERED = TieredPartition(ID, PARTITION.partition)
FOLDER = Folder.of(CLUSTER, TIERED)


def uploaded(log: WrittenLog, *, folded: int = 0, start: int | None = None) -> MemoryObjects:
    """All sealed segments, the first `folded` of them listed by a page."""
    store = MemoryObjects(lambda: 0)
    sealed = []
    for segment, following in zip(log.segments, log.segments[1:], strict=False):
        name = ObjectName(segment.base_offset, 1, f"{segment.base_offset:032x}")
        content = bytes(segment.data)
        store.put(FOLDER.records(name), content, deadline_seconds=1)
        epochs = (EpochStart(1, segment.base_offset),)
        records = Stored(len(content), crc32c(content))
        sealed.append(
            RemoteSegment(name, following.base_offset, records, Stored(0, 0), segment.max_timestamp, epochs)
        )
    folded = min(folded, len(sealed))
    pages: tuple[PageRef, ...] = ()
    if folded:
        page = encode_page(TIERED, sealed[:folded])
        name = ObjectName(sealed[0].base_offset, 1, "f" * 32)
        store.put(FOLDER.page(name), page, deadline_seconds=1)
        pages = (page_of(name, sealed[:folded], stored(page)),)
    first = log.start if start is None else start
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


@given(logs(), st.integers(0, 3), st.data())
def test_it_has_what_a_consumer_would_get(log: WrittenLog, folded: int, data: st.DataObject) -> None:
    for producer_id in PRODUCERS:  # only what is decided gets there
        log.end_transaction(producer_id, commit=data.draw(st.booleans()))
    log.roll()
    start = data.draw(st.integers(log.start, log.end))
    store = uploaded(log, folded=folded)
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
        self._asked: dict[int, int] = {}

    def get_range(self, key: str, start: int, length: int, *, deadline_seconds: float) -> RangeOutcome:
        self._asked[start] = self._asked.get(start, 0) + 1
        if self._asked[start] < self._patience:
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
    assert [each.offset for each in read(uploaded(log))] == list(range(10))
