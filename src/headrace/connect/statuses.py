"""How connectors are, as their workers say in the topic of statuses, with Kafka Connect's keys and JSON.

status-connector-NAME      {"state", "trace", "worker_id", "generation", "version"}
status-task-NAME-0         the same
status-topic-T:connector-NAME   {"topic": {"name", "connector", "task", "discoverTimestamp"}}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

from headrace.client.state_topic import Pair


class State(Enum):
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    UNASSIGNED = "UNASSIGNED"


@dataclass(frozen=True)
class Status:
    state: State
    worker_id: str
    generation: int
    """Of the group when the worker said it: what an older one says later does not count."""
    version: str | None = None
    trace: str | None = None

    def document(self) -> dict[str, Any]:
        """As in answers."""
        found: dict[str, Any] = {"state": self.state.value, "worker_id": self.worker_id}
        if self.trace is not None:
            found["trace"] = self.trace
        return {**found, "version": self.version}

    def encode(self) -> bytes:
        return _json(
            {
                "state": self.state.value,
                "trace": self.trace,
                "worker_id": self.worker_id,
                "generation": self.generation,
                "version": self.version,
            }
        )


def connector_key(name: str) -> bytes:
    return f"status-connector-{name}".encode()


def task_key(name: str, task: int) -> bytes:
    return f"status-task-{name}-{task}".encode()


def topic_pair(topic: str, name: str, task: int, now_ms: int) -> Pair:
    found = {"name": topic, "connector": name, "task": task, "discoverTimestamp": now_ms}
    return topic_key(topic, name), _json({"topic": found})


def topic_key(topic: str, name: str) -> bytes:
    return f"status-topic-{topic}:connector-{name}".encode()


class Statuses:
    """Only `replay` changes it."""

    def __init__(self) -> None:
        self._connectors: dict[str, Status] = {}
        self._tasks: dict[str, dict[int, Status]] = {}
        self._topics: dict[str, set[str]] = {}

    def connector(self, name: str) -> Status | None:
        return self._connectors.get(name)

    def tasks(self, name: str) -> dict[int, Status]:
        return dict(sorted(self._tasks.get(name, {}).items()))

    def topics(self, name: str) -> list[str]:
        return sorted(self._topics.get(name, ()))

    def names(self) -> set[str]:
        return {*self._connectors, *self._tasks}

    def forgotten(self, name: str) -> list[Pair]:
        """What takes all of a connector out of the topic."""
        return [
            (connector_key(name), None),
            *((task_key(name, task), None) for task in self._tasks.get(name, {})),
            *self.forgotten_topics(name),
        ]

    def forgotten_topics(self, name: str) -> list[Pair]:
        return [(topic_key(topic, name), None) for topic in self._topics.get(name, ())]

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """What cannot be read is passed over: the next status replaces it."""
        try:
            text = (key or b"").decode()
            document = None if value is None else json.loads(value)
        except ValueError:
            return
        if document is not None and not isinstance(document, dict):
            return
        if text.startswith("status-connector-"):
            _keep(self._connectors, text.removeprefix("status-connector-"), document)
        elif text.startswith("status-task-"):
            name, _, task = text.removeprefix("status-task-").rpartition("-")
            if name and task.isdecimal():
                _keep(self._tasks.setdefault(name, {}), int(task), document)
        elif text.startswith("status-topic-"):
            topic, _, name = text.removeprefix("status-topic-").partition(":connector-")
            if document is None:
                self._topics.get(name, set()).discard(topic)
            elif name:
                self._topics.setdefault(name, set()).add(topic)


def _keep(kept: dict[Any, Status], key: object, document: dict[str, Any] | None) -> None:
    if document is None:
        kept.pop(key, None)
        return
    state, worker, generation = document.get("state"), document.get("worker_id"), document.get("generation")
    if state not in State.__members__ or not isinstance(worker, str) or not isinstance(generation, int):
        return
    before = kept.get(key)
    if before is not None and before.generation > generation and before.worker_id != worker:
        return  # of a worker that has not noticed yet that others do its work
    kept[key] = Status(State(state), worker, generation, document.get("version"), document.get("trace"))


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
