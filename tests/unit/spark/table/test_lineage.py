"""Which checkpoint belongs to a table, whatever was cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.spark.lake.files import LocalFiles
from headrace.spark.table.lineage import Lineage


@pytest.fixture
def lineage(tmp_path: Path) -> Lineage:
    return Lineage(LocalFiles(), f"file://{tmp_path}/orders")


def checkpointed(lineage: Lineage, rebuilt: int) -> None:
    lineage.files.replace(f"{lineage.checkpoint(rebuilt).directory}/offsets/0", "v1\n{}\n{}")


def test_nothing_is_there_at_first(lineage: Lineage) -> None:
    assert lineage.settle(-1) == 0
    assert lineage.begin(0) == {}
    assert lineage.first_step(0) is None
    assert lineage.definition(0) is None
    assert lineage.derived() == {}


def test_a_rebuild_counts_once_its_step_is_in_the_table(lineage: Lineage) -> None:
    lineage.set_first_step(0, 1)
    checkpointed(lineage, 0)
    lineage.prepare(8, {("t", 0): 100}, "new")
    assert lineage.current() == 0
    assert lineage.settle(8) == 8
    assert lineage.begin(8) == {("t", 0): 100}
    assert lineage.definition(8) == "new"
    assert lineage.current() == 8
    assert lineage.prepared() == [8]  # the old checkpoint would go on from before
    assert lineage.first_step(0) is None


def test_a_rebuild_that_was_cut_off_leaves_no_trace_that_a_later_step_could_meet(lineage: Lineage) -> None:
    lineage.set_first_step(0, 1)
    lineage.set_definition(0, "old")
    lineage.prepare(8, {("t", 0): 100}, "new")
    assert lineage.settle(7) == 0
    # Now a batch takes step 8. It must not be taken for the rebuild.
    assert lineage.settle(8) == 0
    assert lineage.first_step(0) == 1
    assert lineage.definition(0) == "old"


def test_what_is_remembered_comes_back(lineage: Lineage) -> None:
    lineage.set_derived({"index": "y"})
    assert lineage.derived() == {"index": "y"}


def test_each_rebuild_knows_its_topic(lineage: Lineage) -> None:
    assert lineage.topic_id(0) is None
    lineage.set_topic_id(0, None)  # of brokers without ids
    assert lineage.topic_id(0) is None
    lineage.set_topic_id(0, "old")
    lineage.prepare(8, {}, "new", "made anew")
    assert (lineage.topic_id(0), lineage.topic_id(8)) == ("old", "made anew")
    assert lineage.settle(7) == 0
    assert (lineage.topic_id(0), lineage.topic_id(8)) == ("old", None)
