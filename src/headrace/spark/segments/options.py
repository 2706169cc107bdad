"""The options of `format("headrace-segments")`, checked before anything is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from headrace.arrow.columns import END, FIRST, Bounds
from headrace.arrow.identity import ask_ids
from headrace.core.errors import ConfigError
from headrace.spark.kafka_properties import PREFIX, KafkaProperties
from headrace.spark.lake.checkpoint import Offsets, offsets_of
from headrace.spark.reachable import NobodyListens, require_reachable
from headrace.spark.segments.errors import SegmentsRefused
from headrace.spark.segments.place import Bucket, Directories, Place
from headrace.spark.segments.plan import TASK_BYTES, Task, tasks_of

#: As Spark's own connector has them, so that a frame of one fits to a frame of the other.
COLUMNS: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}
_KNOWN: Final = (
    "topic", "tier", "files", "cluster.id", "topic.id", "endpoint", "region", "columns", "partitions",
    "startingOffsets", "endingOffsets", "isolation", "task.bytes", "tasks",
)  # fmt: skip
_ISOLATIONS: Final = ("read_committed", "read_uncommitted")
_LEAST_TASK: Final = 1_000


class Options(NamedTuple):
    topic: str
    place: Place
    columns: tuple[str, ...] = tuple(COLUMNS)
    partitions: tuple[int, ...] | None = None
    starts: Mapping[int, int] = {}
    ends: Mapping[int, int] = {}
    committed_only: bool = True
    task_bytes: int = TASK_BYTES
    tasks: tuple[Task, ...] | None = None
    """Planned before: nothing is looked up."""

    def bounds_of(self, partition: int) -> Bounds:
        return Bounds(self.starts.get(partition, FIRST), self.ends.get(partition, END))


def parse_options(given: Mapping[str, str]) -> Options:
    """Names are compared without case, as Spark does. Asks the brokers where ids are missing."""
    options = {name.lower(): value for name, value in given.items()}
    kafka = {name: value for name, value in given.items() if name.lower().startswith(PREFIX)}
    own = {name: options[name.lower()] for name in _KNOWN if name.lower() in options}
    known = {name.lower() for name in (*_KNOWN, *kafka, "path", "paths")}
    for name in options:
        if name not in known:
            raise SegmentsRefused(f"headrace-segments has no option {name!r}; it has: {', '.join(_KNOWN)}")
    topic = own.get("topic")
    if not topic:
        raise SegmentsRefused('say which topic: .option("topic", NAME)')
    isolation = own.get("isolation", _ISOLATIONS[0])
    if isolation not in _ISOLATIONS:
        raise SegmentsRefused(f"isolation is {' or '.join(_ISOLATIONS)}, not {isolation!r}")
    return Options(
        topic,
        _place(topic, own, _paths(options), kafka),
        _columns(own.get("columns")),
        _numbers(own.get("partitions")),
        _offsets(own, "startingOffsets", "earliest", topic),
        _offsets(own, "endingOffsets", "latest", topic),
        isolation == _ISOLATIONS[0],
        _task_bytes(own.get("task.bytes")),
        tuple(tasks_of(own["tasks"])) if "tasks" in own else None,
    )


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    """Of `files`, one or several with commas between them, or of what `load` was given."""
    if "paths" in options:
        return tuple(json.loads(options["paths"]))
    return tuple(filter(None, options.get("files", options.get("path", "")).split(",")))


def _place(topic: str, own: Mapping[str, str], paths: tuple[str, ...], kafka: Mapping[str, str]) -> Place:
    url = own.get("tier")
    if (url is None) == (not paths):
        raise SegmentsRefused(
            'say where the segments are: either .option("tier", "s3://BUCKET/PREFIX") or '
            '.option("files", "LOG_DIRECTORY")'
        )
    if url is None:
        return Directories(paths)
    store = own.get("endpoint"), own.get("region")
    cluster_id, topic_id = own.get("cluster.id"), own.get("topic.id")
    if cluster_id is None or topic_id is None:
        found = _asked_ids(topic, kafka)
        cluster_id, topic_id = cluster_id or found[0], topic_id or found[1]
    return Bucket(url, cluster_id, topic_id, *store)


def _asked_ids(topic: str, kafka: Mapping[str, str]) -> tuple[str, str]:
    try:
        properties = KafkaProperties(kafka)
        security = properties.security()
    except ConfigError as error:
        raise SegmentsRefused(f"kafka: {error}") from None
    if not properties.bootstrap:
        raise SegmentsRefused(
            "a bucket knows topics by their ids: give cluster.id and topic.id, or "
            "kafka.bootstrap.servers to ask for them"
        )
    from headrace.tier.names import encode_id

    try:
        require_reachable(properties.bootstrap)
    except NobodyListens as error:
        raise SegmentsRefused(f"{error}. Or give cluster.id and topic.id") from None
    cluster_id, found = ask_ids(properties.bootstrap, security, topic)
    return cluster_id, encode_id(found)


def _columns(text: str | None) -> tuple[str, ...]:
    if text is None:
        return tuple(COLUMNS)
    return checked_columns([each.strip() for each in text.split(",")])


def checked_columns(names: list[str]) -> tuple[str, ...]:
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        raise SegmentsRefused(
            f"there is no column {', '.join(map(repr, unknown))}; there are {', '.join(COLUMNS)}"
        )
    return tuple(dict.fromkeys(names))


def _numbers(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(sorted({int(each) for each in text.split(",") if each.strip()}))
    except ValueError:
        raise SegmentsRefused(f"partitions are numbers with commas between them, not {text!r}") from None


def _offsets(own: Mapping[str, str], name: str, word: str, topic: str) -> dict[int, int]:
    text = own.get(name, word)
    if text == word:
        return {}
    try:
        found: Offsets = offsets_of(json.loads(text))
    except (ValueError, AttributeError, TypeError):
        raise SegmentsRefused(
            f'{name} is "{word}", or offsets as {{"{topic}": {{"0": 17}}}}, not {text!r}'
        ) from None
    for (named, partition), offset in found.items():
        if named != topic or offset < 0:
            raise SegmentsRefused(
                f"{name} has an offset of {named}, partition {partition}: {offset}. It is at least 0, and "
                f"of topic {topic}"
            )
    return {partition: offset for (_, partition), offset in found.items()}


def _task_bytes(text: str | None) -> int:
    try:
        number = TASK_BYTES if text is None else int(text)
    except ValueError:
        raise SegmentsRefused(f"task.bytes is a number, not {text!r}") from None
    if number < _LEAST_TASK:
        raise SegmentsRefused(f"task.bytes is at least {_LEAST_TASK}, not {number}")
    return number
