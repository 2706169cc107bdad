"""lake.toml: which topics go into which tables, and how. What is wrong is said with its line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from headrace.core.errors import HeadraceError
from headrace.spark.decoding.formats import Decoding, DecodingRefused, Format
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake import toml_file
from headrace.spark.lake.fields import Section, Wrong
from headrace.spark.lake.kafka_section import kafka_of

TABLE_FORMATS: Final = ("delta", "iceberg", "parquet")
_STARTS: Final = ("earliest", "latest")
_LOSSES: Final = ("stop", "continue")
_SECTIONS: Final = ("kafka", "lake", "topics", "maintenance", "spark")
_DAY: Final = 86_400.0


class LakeConfigError(HeadraceError):
    """Says the file, the line, the key and what to write instead."""


@dataclass(frozen=True)
class TopicRule:
    """One [[topics]]: a topic by its name, or all whose whole name matches a pattern."""

    name: str | None = None
    pattern: str | None = None
    table: str = "{topic}"
    dead_letters: str = "{table}_dead_letters"
    format: Format = Format.BYTES
    schema: str | bytes | None = None
    registry: str | None = field(default=None, repr=False)
    subject: str | None = None
    version: int | None = None
    other_subjects: tuple[str, ...] = ()
    message: str | None = None
    keep_value: bool = False

    def matches(self, topic: str) -> bool:
        if self.name is not None:
            return topic == self.name
        # Whoever means an internal topic names it.
        return not topic.startswith("_") and re.fullmatch(self.pattern or "", topic) is not None

    def decoding(self, topic: str) -> Decoding:
        subject = self.subject
        if self.registry is not None:
            subject = (subject or "{topic}-value").replace("{topic}", topic)
        return Decoding(
            self.format,
            schema=self.schema,
            registry=self.registry,
            subject=subject,
            version=self.version,
            other_subjects=tuple(each.replace("{topic}", topic) for each in self.other_subjects),
            message=self.message,
        )


@dataclass(frozen=True)
class Maintenance:
    every_seconds: float = 3_600.0
    small_file_bytes: int = 32_000_000
    target_file_bytes: int = 128_000_000
    #: Fewer small files than this are left alone: rewriting them would cost more than they do.
    least_files: int = 8
    keep_seconds: float = 7 * _DAY


@dataclass(frozen=True)
class LakeConfig:
    kafka: KafkaProperties
    topics: tuple[TopicRule, ...]
    format: str = "delta"
    #: A directory or URL; every Delta or Parquet table is a directory in it.
    location: str | None = None
    catalog: str = "iceberg"
    namespace: str = "lake"
    #: Where checkpoints and what `lake status` shows are kept.
    state: str = ""
    trigger_seconds: float = 10.0
    discover_seconds: float = 30.0
    start: str = "earliest"
    on_data_loss: str = "stop"
    #: What a kill can cost at most: a batch that was not over is read again.
    max_records_per_batch: int = 10_000_000
    min_partitions: int | None = None
    #: How many topics a load (`--once`) works on at a time.
    parallel_topics: int = 4
    #: The consumer group that shows how far the tables are.
    group: str | None = None
    maintenance: Maintenance | None = None
    spark: Mapping[str, str] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        return self.kafka.bootstrap


def load(path: Path) -> LakeConfig:
    return parse(toml_file.read(path, LakeConfigError, command="headrace lake init"), path)


def parse(text: str, path: Path) -> LakeConfig:
    """Paths in the file are relative to it."""
    return toml_file.parse(text, path, _SECTIONS, _config, LakeConfigError)


def _config(document: dict[str, object], directory: Path) -> LakeConfig:
    lake = Section(document, "lake")
    table_format = lake.choice("format", TABLE_FORMATS, "delta")
    location = location_of(lake.text("location"), directory)
    state = location_of(lake.text("state"), directory)
    if location is None and table_format != "iceberg":
        raise Wrong(
            ("lake",), f'{table_format} tables are directories; write location = "/data/lake" below [lake]'
        )
    if state is None and location is None:
        raise Wrong(("lake",), 'checkpoints need a place; write state = "/data/lake-state" below [lake]')
    config = LakeConfig(
        kafka=kafka_of(document, directory),
        topics=_topics(document, directory),
        format=table_format,
        location=location,
        catalog=lake.text("catalog") or "iceberg",
        namespace=lake.text("namespace") or "lake",
        state=state or f"{location}/_headrace",
        trigger_seconds=lake.seconds("trigger", 10.0),
        discover_seconds=lake.seconds("discover", 30.0),
        start=lake.choice("start", _STARTS, "earliest"),
        on_data_loss=lake.choice("on_data_loss", _LOSSES, "stop"),
        max_records_per_batch=lake.count("max_records_per_batch") or 10_000_000,
        min_partitions=lake.count("min_partitions"),
        parallel_topics=lake.count("parallel_topics") or 4,
        group=lake.text("group"),
        maintenance=maintenance_of(document),
        spark=Section(document, "spark").texts(),
    )
    lake.end()
    return config


def location_of(text: str | None, directory: Path) -> str | None:
    """With its scheme, so that Spark and this process mean the same place whatever Spark's default is."""
    if text is None or re.match(r"[a-z][a-z0-9+.-]*:", text):
        return text if text is None else text.rstrip("/")
    return f"file://{(directory / text).resolve()}"


def _topics(document: dict[str, object], directory: Path) -> tuple[TopicRule, ...]:
    listed = document.get("topics")
    if not isinstance(listed, list) or not listed:
        raise Wrong(
            ("topics",), 'no topic is named; write [[topics]] and below it name = "..." or pattern = "..."'
        )
    rules = tuple(
        _topic(Section({"topics": each}, "topics", number), directory) for number, each in enumerate(listed)
    )
    names = [rule.name for rule in rules if rule.name is not None]
    for number, rule in enumerate(rules):
        if rule.name is not None and names.count(rule.name) > 1:
            raise Wrong(("topics", number, "name"), f"{rule.name} is named twice; keep one of them")
    return rules


def _topic(section: Section, directory: Path) -> TopicRule:
    name, pattern = section.text("name"), section.text("pattern")
    if (name is None) == (pattern is None):
        raise Wrong(section.path, 'a topic has either name = "..." or pattern = "..." (a regular expression)')
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise Wrong(
                (*section.path, "pattern"), f"{pattern!r} is not a regular expression: {error}"
            ) from None
    schema = schema_of(section, directory)
    rule = TopicRule(
        name=name,
        pattern=pattern,
        table=section.text("table") or "{topic}",
        dead_letters=section.text("dead_letters") or "{table}_dead_letters",
        format=Format(section.choice("format", tuple(Format), "bytes")),
        schema=schema,
        registry=section.text("registry"),
        subject=section.text("subject"),
        version=section.count("version"),
        other_subjects=section.names("other_subjects"),
        message=section.text("message"),
        keep_value=section.flag("keep_value", False),
    )
    section.end()
    try:
        rule.decoding(name or "topic")
    except DecodingRefused as refused:
        raise Wrong((*section.path, "format"), str(refused)) from None
    check_other_subjects(section, rule.registry, rule.other_subjects)
    return rule


def check_other_subjects(section: Section, registry: str | None, names: tuple[str, ...]) -> None:
    if names and registry is None:
        raise Wrong(
            (*section.path, "other_subjects"), 'a registry has subjects; write registry = "http://..."'
        )


def schema_of(section: Section, directory: Path, key: str = "schema") -> str | bytes | None:
    schema, file = section.text(key), section.text(f"{key}_file")
    if file is None:
        return schema
    if schema is not None:
        raise Wrong((*section.path, f"{key}_file"), f"{key} and {key}_file say the same thing; keep one")
    try:
        data = (directory / file).read_bytes()
    except OSError as error:
        raise Wrong((*section.path, f"{key}_file"), f"{file}: {error.strerror}") from None
    # A compiled Protobuf descriptor is not text; everything else is.
    return data if file.endswith((".pb", ".desc", ".binpb")) else data.decode()


def maintenance_of(document: dict[str, object]) -> Maintenance | None:
    if "maintenance" not in document:
        return None
    section = Section(document, "maintenance")
    least = section.count("least_files") or 8
    found = Maintenance(
        every_seconds=section.seconds("every", 3_600.0),
        small_file_bytes=section.size("small_file", 32_000_000),
        target_file_bytes=section.size("target_file", 128_000_000),
        least_files=least,
        keep_seconds=section.seconds("keep", 7 * _DAY),
    )
    section.end()
    if found.small_file_bytes > found.target_file_bytes:
        raise Wrong(
            ("maintenance", "small_file"),
            "small_file is larger than target_file: files would be rewritten again and again; lower it",
        )
    return found
