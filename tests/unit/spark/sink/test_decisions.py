"""A record of the topic of decisions counts once its own transaction is committed, whatever others do."""

from __future__ import annotations

from headrace.protocol.control_records import end_marker
from headrace.protocol.records import NewRecord, Record, encode_batch
from headrace.spark.sink.decisions import committed


class Log:
    def __init__(self) -> None:
        self.data = bytearray()
        self._next = 0

    def write(self, value: bytes, producer_id: int = -1) -> None:
        self._append([NewRecord(value, b"k", 1)], producer_id, control=False)

    def end(self, producer_id: int, *, commit: bool) -> None:
        marker = end_marker(commit=commit, coordinator_epoch=0, timestamp=1)
        self._append([marker], producer_id, control=True)

    def _append(self, records: list[NewRecord], producer_id: int, *, control: bool) -> None:
        self.data += encode_batch(
            records,
            base_offset=self._next,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=producer_id >= 0,
            control=control,
        )
        self._next += len(records)

    def committed(self) -> list[bytes | None]:
        return [record.value for record in committed(bytes(self.data), {})]


def test_what_is_open_or_aborted_does_not_count() -> None:
    log = Log()
    log.write(b"aborted", 1)
    log.write(b"open", 2)
    log.end(1, commit=False)
    log.write(b"plain")
    log.write(b"committed", 1)
    log.end(1, commit=True)
    assert log.committed() == [b"plain", b"committed"]


def test_an_open_decision_of_another_sink_is_in_nobodys_way() -> None:
    log = Log()
    log.write(b"of another", 2)
    log.write(b"mine", 1)
    log.end(1, commit=True)
    assert log.committed() == [b"mine"]


def test_records_count_in_the_order_of_their_ends() -> None:
    log = Log()
    log.write(b"first begun", 1)
    log.write(b"first ended", 2)
    log.end(2, commit=True)
    log.end(1, commit=True)
    assert log.committed() == [b"first ended", b"first begun"]


def test_a_marker_may_come_with_a_later_fetch() -> None:
    begun, ended = Log(), Log()
    begun.write(b"mine", 1)
    ended.end(1, commit=True)
    pending: dict[int, list[Record]] = {}
    assert list(committed(bytes(begun.data), pending)) == []
    assert [record.value for record in committed(bytes(ended.data), pending)] == [b"mine"]
    assert pending == {}
