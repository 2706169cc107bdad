"""A count and a checksum see every record that is missing, doubled or changed, and no order."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headrace.audit.checksum import record_hash
from headrace.audit.tally import NOTHING, Tally, total, window_of

_BYTES = st.none() | st.binary(max_size=40)
_RECORDS = st.tuples(_BYTES, _BYTES, st.integers(0, 2**42))
Record = tuple[bytes | None, bytes | None, int]


def tally(records: list[Record]) -> Tally:
    return total(Tally(1, *record_hash(*record)) for record in records)


@given(st.lists(_RECORDS), st.randoms(use_true_random=False))
def test_order_does_not_matter(records: list[Record], chance: object) -> None:
    shuffled = list(records)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a random.Random and types it as Any
    assert tally(shuffled) == tally(records)


@given(st.lists(_RECORDS, min_size=1), st.data())
def test_one_record_removed_doubled_or_altered_is_seen(records: list[Record], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(records) - 1))
    other = data.draw(_RECORDS)
    assume(other != records[at])
    whole = tally(records)
    rest = records[:at] + records[at + 1 :]
    for changed in (rest, [*records, records[at]], [*rest, other]):
        assert tally(changed) != whole
        # The checksum alone sees it too: a loss may be made up for by a double.
        assert tally(changed).checksum != whole.checksum


@given(_BYTES, _BYTES)
def test_key_and_value_are_not_confused(key: bytes | None, value: bytes | None) -> None:
    assume(key != value)
    assert record_hash(key, value, 0) != record_hash(value, key, 0)


@given(st.lists(_RECORDS), st.lists(_RECORDS))
def test_parts_add_up(some: list[Record], others: list[Record]) -> None:
    assert tally(some).plus(tally(others)) == tally(some + others)


@given(st.lists(_RECORDS))
def test_a_checksum_can_be_written_and_read(records: list[Record]) -> None:
    whole = tally(records)
    assert Tally.parse(whole.count, whole.checksum) == whole
    assert len(whole.checksum) == 32


def test_what_is_no_checksum_is_refused() -> None:
    with pytest.raises(ValueError, match="32 hexadecimal digits"):
        Tally.parse(1, "abc")


@pytest.mark.parametrize(("moment", "window"), [(0, 0), (59_999, 0), (60_000, 60_000), (-1, -60_000)])
def test_windows_are_half_open(moment: int, window: int) -> None:
    assert window_of(moment, 60_000) == window


def test_nothing_is_the_zero_of_sums() -> None:
    assert total([]) == NOTHING
    assert NOTHING.checksum == "0" * 32
