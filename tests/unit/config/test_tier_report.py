"""What a broker tells of its history in an object store is read as it was meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.config.tier_report import LedTier, read_tier_report, topic_figure
from headrace.core.ids import TopicPartition

NUMBERS = st.integers(0, 2**62)
TIERS = st.builds(
    LedTier,
    st.integers(0, 9),
    st.none() | NUMBERS,
    *[NUMBERS] * 5,
    st.text(max_size=20),
)


@given(st.lists(TIERS, max_size=3, unique_by=lambda each: each.partition))
def test_what_is_told_is_read(told: list[LedTier]) -> None:
    figures = dict([topic_figure("orders", told), ("of a later version", "?")])
    assert read_tier_report(figures) == {TopicPartition("orders", each.partition): each for each in told}


def test_a_later_version_may_tell_more() -> None:
    (found,) = read_tier_report({"topic.orders": '[[3,null,5,6,7,8,9,"",10,{}]]'}).values()
    assert found == LedTier(3, None, 5, 6, 7, 8, 9, "")


@pytest.mark.parametrize("text", ["", "{}x", "7", "[7]", "[[1,2]]", '[["a",1,2,3,4,5,6,""]]', "[null]"])
def test_what_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="another version"):
        read_tier_report({"topic.orders": text})
