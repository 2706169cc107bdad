"""Every offset of the source is translated as a list of all records would translate it."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.ids import TopicPartition
from headrace.spark.mirror import translation
from headrace.spark.mirror.problems import MirrorRefused
from headrace.spark.mirror.translation import (
    Partition,
    Piece,
    Place,
    Translation,
    decode_key,
    decode_piece,
    merge,
    pieces_of,
    record_of,
)
from headrace.spark.sink.landing import Landing, Runs

_PLACE = Place("orders", "id-1", 2)
_TARGET = TopicPartition("orders", 2)

_BATCHES = st.lists(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8),
    min_size=1,
    max_size=12,
)
"""Of each batch its stretches: how many records, and what is passed over behind them on both sides."""


def _written(batches: list[list[tuple[int, int, int]]]) -> tuple[list[Runs], list[tuple[int, int]]]:
    runs, pairs = [], []
    source = target = 3
    for batch in batches:
        landing = Landing()
        for count, skipped, foreign in batch:
            landing.stored(_TARGET, np.arange(source, source + count), target)
            pairs += [(source + step, target + step) for step in range(count)]
            source, target = source + count + skipped, target + count + foreign
        runs.append(landing.runs()[_TARGET])
        target += 1
    return runs, pairs


def _expected(pairs: list[tuple[int, int]], offset: int) -> int:
    at = bisect_left(pairs, (offset, -1))
    return pairs[at][1] if at < len(pairs) else pairs[-1][1] + 1


def _there(pieces: list[Piece]) -> Translation:
    """As somebody reads it who was not there."""
    found = Translation()
    for piece in pieces:
        record = record_of(piece, 0)
        found.put(record.key, record.value)
    return found


@given(_BATCHES, st.randoms(use_true_random=False))
def test_every_offset_is_exact(batches: list[list[tuple[int, int, int]]], random: object) -> None:
    runs, pairs = _written(batches)
    pieces = [piece for each in runs for piece in pieces_of(_PLACE, each)]
    random.shuffle(pieces)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    found = _there(pieces)
    for offset in range(pairs[-1][0] + 5):
        assert found.translate(_PLACE, offset) == _expected(pairs, offset)


@given(_BATCHES, st.integers(0, 40), st.booleans())
def test_a_merge_changes_no_answer(
    batches: list[list[tuple[int, int, int]]], target_start: int, dies: bool
) -> None:
    runs, pairs = _written(batches)
    found = _there([piece for each in runs for piece in pieces_of(_PLACE, each)])
    partition = found.partitions[_PLACE]
    done = merge(_PLACE, partition, least=2, target_start=target_start)
    if len(partition.pieces) < 2:
        assert done is None
        return
    if done is None:
        return  # what is left above the start of the log is too little
    for piece in done.merged:
        partition.put(piece.first, piece)
    for first in [] if dies else done.removed:
        partition.put(first, None)
    for offset in range(pairs[-1][0] + 5):
        exact = _expected(pairs, offset)
        assert found.translate(_PLACE, offset) == exact or exact < target_start
    if not dies:
        assert len(partition.pieces) == len(done.merged)


def test_long_pieces_are_cut_and_small_ones_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second record is missing: the worst there is."""
    sources = np.arange(0, 200_000, 2, dtype=np.int64)
    runs = Runs(sources, np.arange(100_000), np.ones(100_000, np.int64))
    pieces = list(pieces_of(_PLACE, runs))
    assert len(pieces) == 4
    assert sum(len(record_of(piece, 0).value or b"") for piece in pieces) < 10_000
    found = _there(pieces)
    assert [found.translate(_PLACE, offset) for offset in (0, 1, 2, 99_999, 199_998, 199_999)] == [
        0,
        1,
        1,
        50_000,
        99_999,
        100_000,
    ]
    monkeypatch.setattr(translation, "MOST_RUNS", 100_000)
    (single,) = pieces_of(_PLACE, Runs(np.array([7]), np.array([9]), np.array([1_000_000])))
    assert len(record_of(single, 0).value or b"") < 80


def test_a_partition_of_which_nothing_is_mirrored_begins_at_its_beginning() -> None:
    assert Translation().translate(_PLACE, 12) == 0
    assert Partition().translate(12) == 0


def test_a_topic_that_was_made_anew_has_other_pieces() -> None:
    runs = Runs(np.array([0]), np.array([0]), np.array([5]))
    anew = Place("orders", "id-2", 2)
    again = Runs(np.array([0]), np.array([6]), np.array([5]))
    found = _there([*pieces_of(_PLACE, runs), *pieces_of(anew, again)])
    assert (found.translate(_PLACE, 3), found.translate(anew, 3)) == (3, 9)


def test_what_cannot_be_read_is_said() -> None:
    with pytest.raises(MirrorRefused, match="cannot be read"):
        decode_key(b"orders")
    with pytest.raises(MirrorRefused, match="version 9"):
        decode_piece(_PLACE, 0, b"\x09" + b"x" * 50)
