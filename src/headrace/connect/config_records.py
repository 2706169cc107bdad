"""The records of the topic of configurations, with Kafka Connect's keys and JSON.

connector-NAME          {"properties": {...}}
task-NAME-0             {"properties": {...}}
commit-NAME             {"tasks": 1}
target-state-NAME       {"state": "PAUSED", "state.v2": "STOPPED"}
restart-connector-NAME  {"include-tasks": true, "only-failed": false}
logger-cluster-LOGGER   {"level": "DEBUG"}
headrace-turn           {}          by whoever takes the right to write
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from headrace.client.state_topic import Pair

TURN: Final[Pair] = (b"headrace-turn", b"{}")


class Target(Enum):
    """What a connector is to do."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class ConnectorConfig(NamedTuple):
    name: str
    properties: Mapping[str, str] | None
    """None: the connector is deleted."""


class TaskConfig(NamedTuple):
    name: str
    task: int
    properties: Mapping[str, str]


class TaskCount(NamedTuple):
    name: str
    tasks: int


class TargetState(NamedTuple):
    name: str
    target: Target | None


class Restart(NamedTuple):
    name: str
    include_tasks: bool
    only_failed: bool


class LoggerLevel(NamedTuple):
    """For all workers that run now."""

    logger: str
    level: str


Entry = ConnectorConfig | TaskConfig | TaskCount | TargetState | Restart | LoggerLevel


def encode(entry: Entry) -> Pair:
    match entry:
        case ConnectorConfig(name, None):
            return f"connector-{name}".encode(), None
        case ConnectorConfig(name, properties):
            return f"connector-{name}".encode(), _json({"properties": dict(properties or {})})
        case TaskConfig(name, task, properties):
            return f"task-{name}-{task}".encode(), _json({"properties": dict(properties)})
        case TaskCount(name, tasks):
            return f"commit-{name}".encode(), _json({"tasks": tasks})
        case TargetState(name, None):
            return f"target-state-{name}".encode(), None
        case TargetState(name, Target.STOPPED):
            # Workers that know no STOPPED pause, as they always did.
            return f"target-state-{name}".encode(), _json({"state": "PAUSED", "state.v2": "STOPPED"})
        case TargetState(name, target):
            assert target is not None
            return f"target-state-{name}".encode(), _json({"state": target.value, "state.v2": target.value})
        case LoggerLevel(logger, level):
            return f"logger-cluster-{logger}".encode(), _json({"level": level})
        case Restart(name, include_tasks, only_failed):
            document = {"include-tasks": include_tasks, "only-failed": only_failed}
            return f"restart-connector-{name}".encode(), _json(document)


def decode(key: bytes | None, value: bytes | None) -> Entry | None:
    """None for what is not known here, or is no such record: another maker's worker may have written it."""
    try:
        text = (key or b"").decode()
        document = None if value is None else json.loads(value)
    except ValueError:
        return None
    if document is not None and not isinstance(document, dict):
        return None
    return _decoded(text, document)


def _decoded(key: str, document: dict[str, Any] | None) -> Entry | None:
    if key.startswith("restart-connector-"):
        if document is None:
            return None
        asked = bool(document.get("include-tasks")), bool(document.get("only-failed"))
        return Restart(key.removeprefix("restart-connector-"), *asked)
    if key.startswith("logger-cluster-"):
        level = None if document is None else document.get("level")
        return LoggerLevel(key.removeprefix("logger-cluster-"), level) if isinstance(level, str) else None
    if key.startswith("connector-"):
        properties = None if document is None else document.get("properties")
        if document is not None and not isinstance(properties, dict):
            return None
        return ConnectorConfig(key.removeprefix("connector-"), properties)
    if key.startswith("target-state-"):
        return TargetState(key.removeprefix("target-state-"), _target(document))
    if key.startswith("commit-") and document is not None and isinstance(document.get("tasks"), int):
        return TaskCount(key.removeprefix("commit-"), document["tasks"])
    if key.startswith("task-") and document is not None and isinstance(document.get("properties"), dict):
        name, _, task = key.removeprefix("task-").rpartition("-")
        return TaskConfig(name, int(task), document["properties"]) if task.isdecimal() and name else None
    return None


def _target(document: Mapping[str, Any] | None) -> Target | None:
    if document is None:
        return None
    said = document.get("state.v2", document.get("state"))
    return Target(said) if said in Target.__members__ else None


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
