"""What a configuration means for the topics that exist: which topic goes where, and what is to be started."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from headrace.core.errors import HeadraceError
from headrace.spark.connector import reader_settings
from headrace.spark.decoding.formats import Decoding
from headrace.spark.lake.config import LakeConfig, TopicRule

_SAFE: Final = re.compile(r"[A-Za-z0-9._-]+")


class PlanRefused(HeadraceError):
    """The configuration cannot be carried out with these topics; says what to change."""


class Route(NamedTuple):
    """One topic's way: its tables by name, its state by directory."""

    topic: str
    table: str
    dead_letters: str
    decoding: Decoding
    keep_value: bool
    state: str

    @property
    def checkpoint(self) -> str:
        return f"{self.state}/checkpoint"


def route(config: LakeConfig, topic: str) -> Route | None:
    """By the first rule that matches; a rule that names the topic comes before any pattern."""
    named = (rule for rule in config.topics if rule.name is not None and rule.matches(topic))
    matching = (rule for rule in config.topics if rule.name is None and rule.matches(topic))
    rule = next(named, None) or next(matching, None)
    return None if rule is None else _route(config, rule, topic)


def _route(config: LakeConfig, rule: TopicRule, topic: str) -> Route:
    table = rule.table.replace("{topic}", topic)
    dead_letters = rule.dead_letters.replace("{topic}", topic).replace("{table}", table)
    for name in (table, dead_letters):
        if not _SAFE.fullmatch(name) or name in (".", "..") or name.startswith("_"):
            raise PlanRefused(
                f'{name!r} cannot be the name of a table; set table = "..." for topic {topic} to letters, '
                "digits, dots, dashes and underscores, and begin with no underscore"
            )
    if table == dead_letters:
        raise PlanRefused(
            f"topic {topic}: its dead letters would go into its own table; give them another name"
        )
    return Route(topic, table, dead_letters, rule.decoding(topic), rule.keep_value, f"{config.state}/{topic}")


def routes(config: LakeConfig, topics: Iterable[str]) -> list[Route]:
    """Of the topics that exist and are wanted, by name."""
    found = [made for topic in sorted(set(topics)) if (made := route(config, topic)) is not None]
    _refuse_mixed_tables(found)
    return found


def missing(config: LakeConfig, topics: Iterable[str]) -> list[str]:
    """Topics that are named and do not exist (yet)."""
    there = set(topics)
    return [rule.name for rule in config.topics if rule.name is not None and rule.name not in there]


def _refuse_mixed_tables(found: list[Route]) -> None:
    """Dead letters and records have different columns."""
    tables = {made.table: made.topic for made in found}
    for made in found:
        if made.dead_letters in tables:
            raise PlanRefused(
                f"{made.dead_letters} is the table of topic {tables[made.dead_letters]} and of the dead "
                f'letters of {made.topic}; set dead_letters = "..." for one of them'
            )


def reader_options(config: LakeConfig, topic: str, starting: str | None = None) -> dict[str, str]:
    """For Spark's connector."""
    options = reader_settings(config.kafka) | {
        "subscribe": topic,
        "includeHeaders": "true",
        "startingOffsets": starting or config.start,
        "failOnDataLoss": str(config.on_data_loss == "stop").lower(),
        "maxOffsetsPerTrigger": str(config.max_records_per_batch),
    }
    if config.min_partitions is not None:
        options["minPartitions"] = str(config.min_partitions)
    return options
