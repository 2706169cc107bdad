"""Which topic goes where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake.config import LakeConfig, TopicRule, parse
from headrace.spark.lake.plan import PlanRefused, missing, reader_options, route, routes

_CONFIG = parse(
    '[kafka]\n"bootstrap.servers" = "a:1"\n[lake]\nlocation = "/data"\n[[topics]]\nname = "a"\n',
    Path("lake.toml"),
)


def with_rules(*rules: TopicRule) -> LakeConfig:
    return replace(_CONFIG, topics=rules)


def test_a_name_comes_before_any_pattern() -> None:
    config = with_rules(TopicRule(pattern=".*", table="all"), TopicRule(name="a", table="own"))
    found = {each.topic: each.table for each in routes(config, ["a", "b"])}
    assert found == {"a": "own", "b": "all"}


def test_a_pattern_is_the_whole_name_and_no_internal_topic() -> None:
    config = with_rules(TopicRule(pattern="or.*"))
    assert [each.topic for each in routes(config, ["orders", "floor", "_schemas", "__consumer_offsets"])] == [
        "orders"
    ]
    assert routes(with_rules(TopicRule(pattern=".*")), ["__consumer_offsets"]) == []
    assert route(with_rules(TopicRule(name="__x", table="x")), "__x") is not None


def test_tables_are_named_after_topics() -> None:
    made = route(with_rules(TopicRule(name="a.b", table="raw_{topic}")), "a.b")
    assert made is not None
    assert (made.table, made.dead_letters) == ("raw_a.b", "raw_a.b_dead_letters")
    assert made.checkpoint == "file:///data/_headrace/a.b/checkpoint"


@pytest.mark.parametrize("table", ["a/b", "..", "_hidden", "a b", ""])
def test_a_name_that_would_leave_its_place_is_refused(table: str) -> None:
    with pytest.raises(PlanRefused, match="cannot be the name"):
        route(with_rules(TopicRule(name="a", table=table)), "a")


def test_records_and_dead_letters_do_not_share_a_table() -> None:
    with pytest.raises(PlanRefused, match="its own table"):
        route(with_rules(TopicRule(name="a", dead_letters="a")), "a")
    mixed = with_rules(TopicRule(name="a", dead_letters="b"), TopicRule(name="b"))
    with pytest.raises(PlanRefused, match="dead letters of a"):
        routes(mixed, ["a", "b"])


def test_topics_that_are_named_and_not_there_are_told() -> None:
    config = with_rules(TopicRule(name="a"), TopicRule(name="b"), TopicRule(pattern="c.*"))
    assert missing(config, ["b"]) == ["a"]


def test_the_reader_takes_committed_records_unless_told_otherwise() -> None:
    options = reader_options(_CONFIG, "a")
    assert options["kafka.isolation.level"] == "read_committed"
    assert options["startingOffsets"] == "earliest"
    assert options["failOnDataLoss"] == "true"
    own = replace(_CONFIG, kafka=KafkaProperties({**_CONFIG.kafka, "isolation.level": "read_uncommitted"}))
    assert reader_options(own, "a", '{"a": {"0": 1}}')["kafka.isolation.level"] == "read_uncommitted"
    assert reader_options(own, "a", '{"a": {"0": 1}}')["startingOffsets"] == '{"a": {"0": 1}}'
