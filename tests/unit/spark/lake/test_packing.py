from __future__ import annotations

from headrace.spark.lake.tables.packing import Packing, pack


def test_few_small_files_are_left_alone() -> None:
    assert pack({"a": 1, "b": 1}, Packing(10, 100, 3)) == []
    assert pack({"a": 1, "b": 1, "c": 1}, Packing(10, 100, 3)) == [["a", "b", "c"]]


def test_large_files_are_never_rewritten() -> None:
    assert pack({"a": 50, "b": 50, "c": 50}, Packing(10, 100, 2)) == []
    assert pack({"a": 1, "b": 50, "c": 1}, Packing(10, 100, 2)) == [["a", "c"]]


def test_a_group_is_filled_up_to_the_target() -> None:
    groups = pack({f"{number:02d}": 9 for number in range(25)}, Packing(10, 100, 5))
    assert [len(group) for group in groups] == [11, 11]
    assert [name for group in groups for name in group] == [f"{number:02d}" for number in range(22)]


def test_one_file_is_no_group() -> None:
    assert pack({"a": 9}, Packing(10, 10, 1)) == []
