"""Batches of about so many bytes: how near the estimate comes on logs of which every size is known."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate, takewhile

import pytest

from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.source.density import Sample
from headrace.spark.source.filling import fill


class Log:
    """Records of known sizes, in batches as producers make them; a fetch has whole batches."""

    def __init__(self, sizes: list[int], batch_bytes: int = 16_000, fetch_bytes: int = 64_000) -> None:
        self.sizes = sizes
        self.fetch_bytes = fetch_bytes
        self.fetches = 0
        self.before = [0, *accumulate(sizes)]
        self.ends: list[int] = []
        held = 0
        for offset, size in enumerate(sizes):
            if held and held + size > batch_bytes:
                self.ends.append(offset)
                held = 0
            held += size
        self.ends.append(len(sizes))

    def take(self, _partition: tuple[str, int], offset: int) -> Sample | None:
        if offset >= len(self.sizes):
            return None
        self.fetches += 1
        batch = bisect_right(self.ends, offset)
        begin = self.ends[batch - 1] if batch else 0
        ends = self.ends[batch:]
        fitting = takewhile(lambda end: self.bytes(begin, end) <= self.fetch_bytes, ends)
        end = max(fitting, default=ends[0])
        return Sample(offset, end, self.bytes(offset, end))

    def bytes(self, begin: int, end: int) -> int:
        return self.before[end] - self.before[begin]


def at(offset: int) -> Offsets:
    return {("t", 0): offset}


def batches(log: Log, most_bytes: int) -> list[int]:
    found, position = [], 0
    while position < len(log.sizes):
        end = fill(at(position), at(len(log.sizes)), most_bytes, log.take).end["t", 0]
        assert end > position
        found.append(log.bytes(position, end))
        position = end
    return found


@pytest.mark.parametrize("batch_bytes", [1_000, 16_000, 1_000_000])
@pytest.mark.parametrize(
    ("size", "low", "high"),
    [
        (lambda _: 500, 0.84, 1.0),
        (lambda index: 100 + index, 0.84, 1.0),
        (lambda index: 2100 - index // 2, 0.84, 1.0),
        (lambda index: 2000 if index % 2 else 100, 0.8, 1.05),
    ],
    ids=["equal", "growing", "shrinking", "in turns"],
)
def test_batches_come_near_the_limit(
    size: Callable[[int], int], low: float, high: float, batch_bytes: int
) -> None:
    log = Log([size(index) for index in range(4000)], batch_bytes)
    found = batches(log, 400_000)
    assert all(low <= each / 400_000 <= high for each in found[:-1]), found
    assert found[-1] / 400_000 <= high, found
    assert log.fetches <= 4 * len(found)


@pytest.mark.parametrize("batch_bytes", [4_000, 24_000, 48_000, 200_000, 400_000, 900_000, 1_000_000])
def test_growing_records_fill_a_batch_whatever_batches_the_producer_made(batch_bytes: int) -> None:
    """With three looks the first batch was 0.65 of the limit where producers' batches had 24,000 bytes."""
    log = Log([100 + index for index in range(2000)], batch_bytes)
    assert min(batches(log, 400_000)[:-1]) >= 0.85 * 400_000


@pytest.mark.parametrize("seed", range(60))
def test_growing_records_fill_a_batch_where_the_producers_batches_are_of_all_sizes(seed: int) -> None:
    """When the density of a sample was taken for that of its first record, a first batch that was fetched as
    one record and then all the others was 0.45 of the limit.
    """
    chance = random.Random(seed)
    log = Log([100 + index for index in range(2000)])
    many = chance.choice([5, 50, 300, 900])
    log.ends = [1, *sorted(chance.sample(range(2, 2000), 2000 // many)), 2000]
    found = [each / 400_000 for each in batches(log, 400_000)]
    assert all(0.84 <= each <= 1.0 for each in found[:-1]), found
    assert found[-1] <= 1.0


@pytest.mark.parametrize("count", range(200, 2000, 100))
@pytest.mark.parametrize(
    "size",
    [lambda index: 100 + index, lambda index: 100 + 10 * index, lambda index: 2100 - index],
    ids=["growing", "growing fast", "shrinking"],
)
def test_a_batch_that_reaches_the_end_of_the_log_comes_near_the_limit_too(
    size: Callable[[int], int], count: int
) -> None:
    found = batches(Log([size(index) for index in range(count)]), 400_000)
    assert all(each / 400_000 <= 1.1 for each in found), found


@pytest.mark.parametrize("large", [600, 5_000])
@pytest.mark.parametrize("small", [100, 640, 1_000, 3_000])
def test_large_records_behind_small_ones_do_not_come_all_at_once(small: int, large: int) -> None:
    """Twice the limit at most: between the samples records are taken to grow evenly."""
    found = batches(Log([100] * small + [100_000] * large), 8_000_000)
    assert all(each / 8_000_000 <= 2 for each in found), found


@pytest.mark.parametrize("many", [1, 3])
def test_a_log_that_ends_with_markers_of_transactions_is_sampled_before_them(many: int) -> None:
    class Marked(Log):
        def take(self, partition: tuple[str, int], offset: int) -> Sample | None:
            return super().take(partition, offset) if offset < len(self.sizes) - many else None

    found = batches(Marked([100 + index for index in range(1_500)] + [0] * many), 400_000)
    assert all(each / 400_000 <= 1.1 for each in found), found


@pytest.mark.parametrize("seed", range(8))
def test_sizes_without_order_are_met_on_average(seed: int) -> None:
    chance = random.Random(seed)
    log = Log([50 + int(chance.lognormvariate(5, 1)) for _ in range(20_000)])
    *found, last = [each / 500_000 for each in batches(log, 500_000)]
    assert all(0.6 <= each <= 1.5 for each in found), found
    assert last <= 1.5
    assert 0.8 <= sum(found) / len(found) <= 1.1


def test_equal_records_need_one_fetch_for_each_batch() -> None:
    class Remembering(Log):
        last: Sample | None = None

        def take(self, partition: tuple[str, int], offset: int) -> Sample | None:
            if self.last is None or self.last.begin != offset:
                self.last = super().take(partition, offset)
            return self.last

    log = Remembering([500] * 20_000)
    assert len(batches(log, 1_000_000)) + 1 >= log.fetches


def test_a_record_larger_than_the_limit_is_read_alone() -> None:
    assert batches(Log([50_000] * 3), 10_000) == [50_000] * 3


def test_what_is_less_than_the_limit_is_read_whole() -> None:
    assert batches(Log([100] * 50), 100_000) == [5_000]


def test_small_records_before_large_ones_are_no_reason_to_stop() -> None:
    sizes = [20] * 102 + [2_000] * 200
    assert sum(batches(Log(sizes), 5_000)) == sum(sizes)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_a_log_is_like_each_batch_goes_forward(seed: int) -> None:
    chance = random.Random(seed)
    sizes: list[int] = []
    for _ in range(chance.randint(1, 6)):
        sizes += [chance.choice([1, 20, 500, 2_000, 90_000])] * chance.randint(1, 60)
    log = Log(sizes, chance.choice([1_000, 16_000, 1_000_000]), chance.choice([4_000, 64_000]))
    assert sum(batches(log, chance.choice([100, 5_000, 100_000]))) == sum(sizes)


def nothing(_partition: tuple[str, int], _offset: int) -> None:
    """Brokers that are too slow for a sample."""


def test_without_samples_records_are_taken_to_be_as_the_last_ones() -> None:
    seen = fill(at(0), at(100_000), 50_000, Log([500] * 100_000).take)
    assert seen.density(at(0)) == pytest.approx(500)
    filled = fill(at(90), at(100_000), 50_000, nothing, seen.density(at(0)))
    assert filled.end == at(90 + 95)
    assert filled.bytes == pytest.approx(95 * 500)


def test_where_nothing_is_known_a_batch_is_small() -> None:
    begin, end = {("t", 0): 5, ("t", 1): 0}, {("t", 0): 1_000_000, ("t", 1): 3}
    filled = fill(begin, end, 1 << 30, nothing)
    assert filled == ({("t", 0): 105, ("t", 1): 3}, 0.0)
    assert filled.density(begin) is None


def test_no_backlog_is_no_batch() -> None:
    assert fill(at(7), at(7), 1, nothing, 500.0).end == at(7)


def test_partitions_that_are_not_sampled_are_as_the_others() -> None:
    begin = {("t", number): 0 for number in range(40)}
    end = dict.fromkeys(begin, 1000)
    filled = fill(begin, end, 400_000, lambda _, offset: Sample(offset, offset + 10, 1_000))
    assert 340_000 <= sum(filled.end.values()) * 100 <= 400_000
    assert filled.bytes == pytest.approx(sum(filled.end.values()) * 100)
