"""Rates of partitions from what brokers count, and the reports that they come in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.controller.self_balancing.rates import WINDOW_SECONDS, RateSamples
from headrace.controller.self_balancing.reports import (
    DirectorySpace,
    LedPartition,
    LoadReport,
    TopicTraffic,
    directory_figure,
    read_report,
    topic_figure,
)
from headrace.controller.self_balancing.slices import result_of
from headrace.core.ids import TopicPartition

COUNTS = st.integers(0, 2**62)
TRAFFIC = st.builds(
    TopicTraffic,
    COUNTS,
    COUNTS,
    st.lists(st.builds(LedPartition, st.integers(0, 2**31 - 1), COUNTS, COUNTS), max_size=3).map(tuple),
)
SPACES = st.builds(DirectorySpace, st.text(), st.booleans(), st.integers(-1, 2**62), st.integers(-1, 2**62))


def report(bytes_in: int, bytes_out: int, *led: tuple[int, int]) -> LoadReport:
    partitions = tuple(LedPartition(number, end, 0) for number, end in led)
    return LoadReport([], {"t": TopicTraffic(bytes_in, bytes_out, partitions)})


def partition(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def test_the_bytes_of_a_topic_are_shared_out_by_records() -> None:
    samples = RateSamples()
    samples.note(100.0, {1: report(1000, 0, (0, 10), (1, 10)), 2: report(0, 0)})
    assert (samples.seconds, samples.rates()) == (0.0, {})
    samples.note(110.0, {1: report(5000, 2000, (0, 40)), 2: report(0, 0, (1, 20))})
    rates = samples.rates()
    assert rates[partition(0)] == (300.0, 150.0)
    assert rates[partition(1)] == (100.0, 50.0), "though another broker leads it now"


def test_without_new_records_readers_are_shared_out_evenly() -> None:
    samples = RateSamples()
    samples.note(0.0, {1: report(0, 0, (0, 10), (1, 10))})
    samples.note(10.0, {1: report(0, 2000, (0, 10), (1, 10))})
    assert samples.rates()[partition(0)] == samples.rates()[partition(1)] == (0.0, 100.0)


def test_a_broker_that_was_restarted_counts_anew() -> None:
    samples = RateSamples()
    samples.note(0.0, {1: report(10**9, 10**9, (0, 10))})
    samples.note(10.0, {1: report(500, 0, (0, 20))})
    assert samples.rates()[partition(0)] == (50.0, 0.0)


def test_what_is_older_than_the_window_does_not_count() -> None:
    samples = RateSamples()
    samples.note(0.0, {1: report(0, 0, (0, 0))})
    samples.note(10.0, {1: report(10**9, 0, (0, 100))})
    samples.note(10.0 + WINDOW_SECONDS, {1: report(10**9 + 600, 0, (0, 200))})
    assert samples.rates()[partition(0)].bytes_in == 2.0
    samples.forget()
    assert samples.rates() == {}


@given(st.lists(SPACES, min_size=1, max_size=3), st.dictionaries(st.text(), TRAFFIC, max_size=3))
def test_a_report_travels_as_figures(spaces: list[DirectorySpace], topics: dict[str, TopicTraffic]) -> None:
    figures = dict(
        [
            *(directory_figure(each, number) for number, each in enumerate(spaces)),
            *(topic_figure(name, each) for name, each in topics.items()),
        ]
    )
    assert result_of(read_report(figures)) == LoadReport(spaces, topics)


@pytest.mark.parametrize(
    "figures", [{}, {"directory.0": "[1]"}, {"topic.a": "{}"}, {"topic.a": "7"}, {"topic.a": "{"}]
)
def test_a_report_of_another_version_says_so(figures: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"of (another|a) version"):
        result_of(read_report(figures))
