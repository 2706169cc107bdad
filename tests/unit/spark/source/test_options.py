"""What is asked for is checked before Spark or a broker is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.spark.source.options import SourceRefused, Wish, check_undecodable, names, properties
from headrace.spark.source.positions import fitting, milliseconds, named

KAFKA = {"bootstrap.servers": "localhost:9092"}


def test_the_connector_reads_committed_records_unless_told_otherwise() -> None:
    options = Wish(("a", "b"), KAFKA, min_partitions=4).connector()
    assert options["kafka.isolation.level"] == "read_committed"
    assert (options["subscribe"], options["failOnDataLoss"], options["minPartitions"]) == ("a,b", "true", "4")
    loose = Wish(("a",), {**KAFKA, "isolation.level": "read_uncommitted"}, on_loss="latest")
    assert loose.connector()["kafka.isolation.level"] == "read_uncommitted"
    assert loose.connector()["failOnDataLoss"] == "false"
    assert not loose.committed_only


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"topics": ()}, "name a topic"),
        ({"kafka": {}}, "where the brokers are"),
        ({"kafka": {**KAFKA, "group.id": "g"}}, "say group="),
        ({"kafka": {**KAFKA, "auto.offset.reset": "latest"}}, "say start="),
        ({"on_loss": "ignore"}, "on_loss is one of fail, earliest, latest"),
        ({"group": ""}, "a group needs a name"),
        ({"max_bytes": 0}, "max_bytes is at least 1"),
        ({"max_records": -5}, "max_records is at least 1"),
    ],
)
def test_a_mistake_is_told_with_what_to_do(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(SourceRefused, match=said):
        Wish(**{"topics": ("t",), "kafka": KAFKA, **changed})


def test_an_unknown_choice_for_bad_records_is_refused() -> None:
    choice: Any = "skip"
    with pytest.raises(SourceRefused, match="keep, drop, fail"):
        check_undecodable(choice)


def test_one_topic_or_several_have_names() -> None:
    assert names("orders") == ("orders",)
    assert names(["a", "b"]) == ("a", "b")


def test_brokers_alone_are_properties_enough() -> None:
    assert Wish(("t",), properties("localhost:9092")).kafka == KAFKA
    assert properties(KAFKA) is KAFKA


def test_times_need_a_zone() -> None:
    assert milliseconds(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)) == 1000
    with pytest.raises(SourceRefused, match="no time zone"):
        milliseconds(datetime(2026, 1, 1))


def test_offsets_are_given_for_partitions_that_exist() -> None:
    there = [("t", 0), ("t", 1)]
    assert named({"t": {1: 7}}, there) == {("t", 1): 7}
    with pytest.raises(SourceRefused, match="no partition 2 of t"):
        named({"t": {2: 7}}, there)
    with pytest.raises(SourceRefused, match="at least 0"):
        named({"t": {0: -1}}, there)


def test_a_range_is_what_there_is_of_it() -> None:
    each = ("t", 0)
    first, last = {each: 10}, {each: 90}
    assert fitting({each: 20}, {each: 50}, first, last, "fail") == {each: (20, 50)}
    assert fitting({each: 60}, {each: 50}, first, last, "fail") == {each: (60, 60)}
    assert fitting({each: 5}, {each: 50}, first, last, "earliest") == {each: (10, 50)}
    assert fitting({each: 5}, {each: 50}, first, last, "latest") == {each: (90, 90)}
    with pytest.raises(SourceRefused, match="5 offsets from 5 on are gone"):
        fitting({each: 5}, {each: 50}, first, last, "fail")
    with pytest.raises(SourceRefused, match="before the given end 91"):
        fitting({each: 20}, {each: 91}, first, last, "earliest")
    with pytest.raises(SourceRefused, match="before the given start 99"):
        fitting({each: 99}, {each: 90}, first, last, "earliest")
