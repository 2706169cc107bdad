"""What is known of a partition's bytes by samples that overlap, touch, or leave gaps."""

from __future__ import annotations

import random

import pytest

from headrace.spark.source.density import Density, Sample


def growing(begin: int, end: int) -> float:
    """Bytes of records of which each is one byte larger than the last."""
    return (end - begin) * (begin + end) / 2


def sample(begin: int, end: int) -> Sample:
    return Sample(begin, end, growing(begin, end))


def test_behind_a_sample_all_is_as_in_it() -> None:
    density = Density(Sample(10, 20, 100.0))
    assert [density.bytes(end) for end in (10, 11, 20, 40)] == [0, 10, 100, 300]


def test_between_two_samples_records_grow_evenly() -> None:
    density = Density(sample(0, 10))
    density.add(sample(90, 100))
    for end in (10, 30, 90, 100):
        assert density.bytes(end) == pytest.approx(growing(0, end))


@pytest.mark.parametrize("begins", [(300, 700), (700, 300)])
def test_fetches_within_one_batch_tell_exactly_what_lies_between_their_beginnings(
    begins: tuple[int, int],
) -> None:
    """Whichever came first."""
    density = Density(sample(0, 2000))
    for begin in begins:
        density.add(sample(begin, 2000))
    for end in (300, 700, 2000):
        assert density.bytes(end) == pytest.approx(growing(0, end))


def test_one_record_and_then_all_the_others() -> None:
    density = Density(sample(0, 1))
    density.add(sample(341, 2000))
    assert density.bytes(341) == pytest.approx(growing(0, 341), rel=0.01)


@pytest.mark.parametrize("seed", range(50))
def test_more_offsets_never_have_fewer_bytes(seed: int) -> None:
    chance = random.Random(seed)
    density = Density(Sample(0, chance.randint(1, 50), chance.uniform(1, 1e6)))
    for _ in range(5):
        begin = chance.randint(1, 200)
        density.add(Sample(begin, begin + chance.randint(1, 100), chance.uniform(1, 1e6)))
    sizes = [density.bytes(end) for end in range(1, 400)]
    assert sizes[0] > 0
    assert sizes == sorted(sizes)
