"""What the workers of Connect run: connectors and their tasks, where, and why they failed. Headrace's workers
and Kafka Connect's tell it in the same words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headrace.config.secret import HIDDEN
from headrace.connect.redaction import concealed, secrets_of, shown
from headrace.console.services.following import Asker

LONGEST_TRACE: Final = 20_000
_IN_ADDRESS: Final = re.compile(r"(?<=://)[^/\s@]+@")
_IN_QUERY: Final = re.compile(r"(?i)((?:password|passwd|pwd|secret|token|api[_-]?key)=)[^&;\s]+")


class Part(NamedTuple):
    """A connector itself, or one of its tasks."""

    state: str
    """Empty where no worker has told one."""
    worker: str
    trace: str


class Task(NamedTuple):
    number: int
    part: Part


class Connector(NamedTuple):
    name: str
    kind: str
    """source, sink or unknown."""
    plugin: str
    itself: Part
    tasks: Sequence[Task]
    settings: Sequence[tuple[str, str]]
    """Without secrets."""

    @property
    def parts(self) -> list[Part]:
        return [self.itself, *(task.part for task in self.tasks)]

    @property
    def condition(self) -> str:
        """In one word: what fails counts first."""
        states = [part.state for part in self.parts]
        return "FAILED" if "FAILED" in states else self.itself.state

    @property
    def trace(self) -> str:
        return next((part.trace for part in self.parts if part.trace), "")


class ConnectSeen(NamedTuple):
    connectors: Mapping[str, Connector]
    cluster_id: str
    """Of the brokers that the workers use; empty where they do not tell."""


def look(asker: Asker) -> ConnectSeen:
    """By three requests, however many connectors there are. Raises ClientFailure."""
    root = _mapping(asker, "/")
    infos = _mapping(asker, "/connectors?expand=info")
    statuses = _mapping(asker, "/connectors?expand=status")
    found = {
        name: _connector(name, _inside(infos[name], "info"), _inside(statuses.get(name), "status"))
        for name in sorted(map(str, infos))
    }
    return ConnectSeen(found, _text(root, "kafka_cluster_id"))


def _connector(name: str, info: Mapping[str, object], status: Mapping[str, object]) -> Connector:
    settings = {str(key): str(value) for key, value in _inside(info, "config").items()}
    secrets = secrets_of(settings, None)
    return Connector(
        name,
        _text(info, "type") or _text(status, "type") or "unknown",
        settings.get("connector.class", ""),
        _part(_inside(status, "connector"), secrets),
        _tasks(info, status, secrets),
        [(key, without_passwords(value)) for key, value in sorted(shown(settings, None).items())],
    )


def _tasks(info: Mapping[str, object], status: Mapping[str, object], secrets: frozenset[str]) -> list[Task]:
    """Those that have a status, and those that have none yet."""
    numbers = {_number(_mapped(each), "task") for each in _listed(info, "tasks")}
    told = {_number(_mapped(each), "id"): _part(_mapped(each), secrets) for each in _listed(status, "tasks")}
    return [Task(at, told.get(at, Part("", "", ""))) for at in sorted(numbers | set(told)) if at >= 0]


def _part(document: Mapping[str, object], secrets: frozenset[str]) -> Part:
    trace = without_passwords(concealed(_text(document, "trace"), secrets - {HIDDEN}))
    if len(trace) > LONGEST_TRACE:
        trace = f"{trace[:LONGEST_TRACE]}\n… cut: it has {len(trace):,} characters"
    return Part(_text(document, "state"), _text(document, "worker_id"), trace)


def without_passwords(text: str) -> str:
    """Addresses can hold them. Kafka Connect's workers hide nothing, so this is not left to them."""
    return _IN_QUERY.sub(rf"\1{HIDDEN}", _IN_ADDRESS.sub(f"{HIDDEN}@", text))


def _mapping(asker: Asker, path: str) -> Mapping[str, object]:
    told = asker.get(path)
    if not isinstance(told, dict):
        raise asker.strange(path)
    return told


def _inside(document: object, name: str) -> Mapping[str, object]:
    return _mapped(_mapped(document).get(name))


def _mapped(document: object) -> Mapping[str, object]:
    return document if isinstance(document, dict) else {}


def _listed(document: Mapping[str, object], name: str) -> Sequence[object]:
    found = document.get(name)
    return found if isinstance(found, list) else ()


def _text(document: Mapping[str, object], name: str) -> str:
    found = document.get(name)
    return found if isinstance(found, str) else ""


def _number(document: Mapping[str, object], name: str) -> int:
    found = document.get(name)
    return found if isinstance(found, int) else -1
