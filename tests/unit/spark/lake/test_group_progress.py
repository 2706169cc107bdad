"""What a group is told of several tables."""

from __future__ import annotations

from headrace.spark.lake.group_progress import slowest


def test_of_two_tables_of_one_topic_the_group_has_what_both_have() -> None:
    fast, slow = {("orders", 0): 10, ("orders", 1): 4}, {("orders", 0): 7}
    assert slowest([fast, slow]) == {("orders", 0): 7, ("orders", 1): 4}
    assert slowest([slow, fast, {("clicks", 0): 1}]) == {("orders", 0): 7, ("orders", 1): 4, ("clicks", 0): 1}
    assert slowest([]) == {}
