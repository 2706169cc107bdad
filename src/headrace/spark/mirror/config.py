"""mirror.toml: which topics go from which cluster to which. What is wrong is said with its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headrace.core.errors import HeadraceError
from headrace.protocol.compression import Compression
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake import toml_file
from headrace.spark.lake.fields import Section, Wrong
from headrace.spark.lake.kafka_section import kafka_of
from headrace.spark.mirror.plan import Accept
from headrace.spark.sink.naming import SINK_ID
from headrace.spark.sink.options import Options, parse_options

_SECTIONS: Final = ("source", "target", "mirror", "topics", "groups", "acls", "spark")
STARTS: Final = ("earliest", "latest")
EXISTING: Final = ("refuse", "append")
COMPRESSIONS: Final = tuple(each.name.lower() for each in Compression)


class MirrorConfigError(HeadraceError):
    """Says the file, the line, the key and what to write instead."""


@dataclass(frozen=True)
class TopicRule:
    """One [[topics]]: a topic by its name, or all whose whole name matches a pattern."""

    name: str | None = None
    pattern: str | None = None
    exclude: tuple[str, ...] = ()
    target: str = "{topic}"

    def matches(self, topic: str) -> bool:
        if self.name is not None:
            return topic == self.name
        # Whoever means an internal topic names it.
        if topic.startswith("_") or re.fullmatch(self.pattern or "", topic) is None:
            return False
        return not any(re.fullmatch(each, topic) for each in self.exclude)


@dataclass(frozen=True)
class Groups:
    patterns: tuple[str, ...] = (".*",)
    exclude: tuple[str, ...] = ()
    every_seconds: float = 5.0

    def matches(self, group: str) -> bool:
        if any(re.fullmatch(each, group) for each in self.exclude):
            return False
        return any(re.fullmatch(each, group) for each in self.patterns)


@dataclass(frozen=True)
class Acls:
    every_seconds: float = 60.0


@dataclass(frozen=True)
class MirrorConfig:
    name: str
    source: KafkaProperties
    target: KafkaProperties
    topics: tuple[TopicRule, ...]
    start: Accept = "earliest"
    existing: str = "refuse"
    trigger_seconds: float = 1.0
    discover_seconds: float = 30.0
    max_records_per_batch: int = 1_000_000
    tasks: int | None = None
    compression: str = "none"
    replication_factor: int | None = None
    settings: bool = True
    decisions: str = "__headrace_sink"
    group: str | None = None
    """At the source: the consumer group that shows how far the mirror is."""
    groups: Groups | None = None
    acls: Acls | None = None
    spark: Mapping[str, str] = field(default_factory=dict)

    @property
    def sink(self) -> str:
        return f"mirror-{self.name}"

    @property
    def translations(self) -> str:
        """The topic of translated offsets."""
        return f"__headrace_mirror_{self.name}"

    def options(self) -> Options:
        given = {
            "sink.id": self.sink,
            "decisions.topic": self.decisions,
            "compression": self.compression,
            "kafka.client.id": f"headrace-mirror-{self.name}",
            **self.target.options,
        }
        return parse_options(given, streaming=False)

    def targets(self, topics: Iterable[str]) -> dict[str, str]:
        """The target's topic for each of these that are to be mirrored. Names come before patterns."""
        found: dict[str, str] = {}
        for topic in topics:
            rule = self._rule(topic)
            if rule is not None:
                target = rule.target.replace("{topic}", topic)
                if target in found.values():
                    raise MirrorConfigError(
                        f"topics {topic} and {_key_of(found, target)} would both go into {target}: their "
                        "offsets could not be told apart. Give one of them another target"
                    )
                found[topic] = target
        return found

    def _rule(self, topic: str) -> TopicRule | None:
        if topic in (self.translations, self.decisions):
            return None
        matching = [rule for rule in self.topics if rule.matches(topic)]
        return min(matching, key=lambda rule: rule.name is None, default=None)

    @property
    def named(self) -> list[str]:
        return [rule.name for rule in self.topics if rule.name is not None]


def _key_of(found: Mapping[str, str], target: str) -> str:
    return next(topic for topic, other in found.items() if other == target)


def load(path: Path) -> MirrorConfig:
    return parse(toml_file.read(path, MirrorConfigError, command="headrace mirror init"), path)


def parse(text: str, path: Path) -> MirrorConfig:
    """Paths in the file are relative to it."""
    return toml_file.parse(text, path, _SECTIONS, of_document, MirrorConfigError)


def of_document(document: dict[str, object], directory: Path) -> MirrorConfig:
    """Of sections, wherever they stood. Raises Wrong."""
    mirror = Section(document, "mirror")
    name = mirror.text("name") or "mirror"
    if not SINK_ID.fullmatch(f"mirror-{name}"):
        raise Wrong(("mirror", "name"), f"{name!r}: use 1 to 90 letters, digits, '.', '_' and '-'")
    group = mirror.text("group")
    config = MirrorConfig(
        name=name,
        source=kafka_of(document, directory, "source"),
        target=kafka_of(document, directory, "target"),
        topics=_topics(document),
        start="latest" if mirror.choice("start", STARTS, "earliest") == "latest" else "earliest",
        existing=mirror.choice("existing", EXISTING, "refuse"),
        trigger_seconds=mirror.seconds("trigger", 1.0),
        discover_seconds=mirror.seconds("discover", 30.0),
        max_records_per_batch=mirror.count("max_records_per_batch") or 1_000_000,
        tasks=mirror.count("tasks"),
        compression=mirror.choice("compression", COMPRESSIONS, "none"),
        replication_factor=mirror.count("replication_factor"),
        settings=mirror.flag("settings", True),
        decisions=mirror.text("decisions") or "__headrace_sink",
        group=group,
        groups=_groups(document, own=group),
        acls=_acls(document),
        spark=Section(document, "spark").texts(),
    )
    mirror.end()
    try:
        config.options()
    except HeadraceError as error:
        raise Wrong(("target",), str(error)) from None
    return config


def _topics(document: dict[str, object]) -> tuple[TopicRule, ...]:
    listed = document.get("topics")
    if not isinstance(listed, list) or not listed:
        raise Wrong(
            ("topics",), 'no topic is named; write [[topics]] and below it name = "..." or pattern = "..."'
        )
    rules = tuple(_topic(Section({"topics": each}, "topics", at)) for at, each in enumerate(listed))
    names = [rule.name for rule in rules if rule.name is not None]
    for at, rule in enumerate(rules):
        if rule.name is not None and names.count(rule.name) > 1:
            raise Wrong(("topics", at, "name"), f"{rule.name} is named twice; keep one of them")
    return rules


def _topic(section: Section) -> TopicRule:
    name, pattern = section.text("name"), section.text("pattern")
    if (name is None) == (pattern is None):
        raise Wrong(section.path, 'a topic has either name = "..." or pattern = "..." (a regular expression)')
    exclude = section.names("exclude")
    _check_patterns((*section.path, "pattern"), [] if pattern is None else [pattern])
    _check_patterns((*section.path, "exclude"), exclude)
    target = section.text("target") or "{topic}"
    if pattern is not None and "{topic}" not in target:
        raise Wrong((*section.path, "target"), f"{target!r} is one topic for many; write {{topic}} in it")
    section.end()
    return TopicRule(name, pattern, exclude, target)


def _groups(document: dict[str, object], own: str | None) -> Groups | None:
    """The mirror's own group is not carried: nobody could go on from it."""
    if "groups" not in document:
        return None
    section = Section(document, "groups")
    patterns = section.names("patterns") or (".*",)
    exclude = section.names("exclude")
    _check_patterns(("groups", "patterns"), patterns)
    _check_patterns(("groups", "exclude"), exclude)
    left_out = exclude if own is None else (*exclude, re.escape(own))
    found = Groups(patterns, left_out, section.seconds("every", 5.0))
    section.end()
    return found


def _acls(document: dict[str, object]) -> Acls | None:
    if "acls" not in document:
        return None
    section = Section(document, "acls")
    found = Acls(section.seconds("every", 60.0))
    section.end()
    return found


def _check_patterns(path: tuple[str | int, ...], patterns: Iterable[str]) -> None:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise Wrong(path, f"{pattern!r} is not a regular expression: {error}") from None
