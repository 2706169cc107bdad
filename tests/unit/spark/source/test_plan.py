"""Where a stream goes on when records are gone: never in silence, and the same way after a restart."""

from __future__ import annotations

import pytest

from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.source.plan import Loss, Memory, Passage, RecordsLost, View, losses, memory_of, step

OLD, NEW = {"t": "old"}, {"t": "new"}


def at(*offsets: int) -> Offsets:
    return {("t", number): offset for number, offset in enumerate(offsets)}


def test_nothing_is_lost_where_the_position_lies_in_the_log() -> None:
    view = View(at(10, 20), at(5, 20), OLD)
    done = step(Memory(OLD), at(5, 20), view, "fail")
    assert done == (Memory(OLD), None)


def test_ids_are_learned_where_none_were_known() -> None:
    assert step(Memory(), at(5), View(at(10), at(0), OLD), "fail").memory == Memory(OLD)


def test_brokers_that_have_no_ids_or_do_not_name_a_partition_are_believed() -> None:
    assert losses(at(5, 6), View(at(10), at(0), {}), OLD) == []


def test_records_that_were_removed_stop_the_query_and_it_says_how_many() -> None:
    view = View(at(100, 100), at(30, 0), OLD)
    with pytest.raises(RecordsLost, match=r"t, partition 0: 20 offsets from 10 on .* begins at 30") as error:
        step(Memory(OLD), at(10, 10), view, "fail")
    assert 'on_loss="earliest"' in str(error.value)
    assert "partition 1" not in str(error.value)


def test_a_log_that_ends_before_the_position_is_a_loss() -> None:
    view = View(at(7), at(0), OLD)
    assert losses(at(9), view, OLD) == [Loss("t", 0, "cut", 9, 0, 7)]
    with pytest.raises(RecordsLost, match="ends at 7, but was read to 9"):
        step(Memory(OLD), at(9), view, "fail")


@pytest.mark.parametrize("latest", [3, 10, 50])
def test_a_topic_made_anew_is_known_by_its_id_however_long_it_is(latest: int) -> None:
    with pytest.raises(RecordsLost, match="topic t was deleted and made anew"):
        step(Memory(OLD), at(10), View(at(latest), at(0), NEW), "fail")


def test_many_losses_are_told_in_few_words() -> None:
    view = View(at(*[9] * 40), at(*[5] * 40), OLD)
    with pytest.raises(RecordsLost, match="35 more") as error:
        step(Memory(OLD), at(*[1] * 40), view, "fail")
    assert len(str(error.value)) < 1200


def test_earliest_goes_on_with_the_first_record_and_leaves_other_partitions_alone() -> None:
    done = step(Memory(OLD), at(10, 10), View(at(100, 100), at(30, 0), OLD), "earliest")
    way = Passage({("t", 0): 10}, {("t", 0): 30})
    assert done == (Memory(OLD, way), at(30, 10))


def test_latest_goes_on_behind_the_last_record_also_of_new_partitions() -> None:
    done = step(Memory(OLD), at(10), View(at(40, 8), at(0, 0), NEW), "latest")
    assert done.passage_end == at(40, 8)
    assert done.memory.passage == Passage(at(10), at(40, 8))


def test_a_topic_made_anew_with_fewer_partitions_loses_the_others() -> None:
    done = step(Memory(OLD), at(10, 10, 10), View(at(40), at(0), NEW), "earliest")
    assert done == (Memory(NEW, Passage(at(10, 10, 10), at(0))), at(0))


def test_a_passage_that_moves_nothing_is_none() -> None:
    assert step(Memory(OLD), at(0), View(at(4), at(0), NEW), "earliest") == (Memory(NEW), None)


def test_a_restart_before_the_passage_makes_the_same_one() -> None:
    """Also where the choice was changed meanwhile: Spark may have written the batch down already."""
    view = View(at(40), at(0), NEW)
    first = step(Memory(OLD), at(10), view, "latest")
    again = step(memory_of(first.memory.text()), at(10), View(at(90), at(0), NEW), "earliest")
    assert again == first


def test_behind_the_passage_it_is_forgotten_and_the_old_position_means_nothing() -> None:
    first = step(Memory(OLD), at(10), View(at(40), at(0), NEW), "earliest")
    view = View(at(40), at(0), NEW)
    behind = step(first.memory, at(0), view, "earliest")
    assert behind.memory == Memory(NEW)
    assert behind.passage_end is None
    assert step(behind.memory, at(10), view, "earliest") == (Memory(NEW), None)


def test_a_passage_skips_its_own_ranges_only() -> None:
    way = Passage(at(10), at(40, 8))
    assert way.skips(("t", 0), at(10), at(40, 8))
    assert way.skips(("t", 1), at(10), at(40, 8))
    assert not way.skips(("t", 0), at(10), at(39, 8))
    assert not way.skips(("t", 1), at(10, 2), at(40, 8))
    assert not way.skips(("u", 0), {("u", 0): 10}, {("u", 0): 40})


def test_memory_is_what_was_kept() -> None:
    memory = Memory({"t": "x", "u": "y"}, Passage(at(1, 2), at(3)))
    assert memory_of(memory.text()) == memory
    assert memory_of(None) == Memory()
    with pytest.raises(RecordsLost, match="version 2"):
        memory_of('{"version": 2}')
