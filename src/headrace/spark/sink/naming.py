"""The names of a sink: of its decisions, and of its tasks' transactions."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

_PREFIX: Final = "headrace-sink"
_JOB: Final = "job "
SINK_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")


def decider_id(sink: str) -> str:
    """The transactional id that decisions are written with: who takes it fences the driver before."""
    return f"{_PREFIX}/{sink}"


def task_id(sink: str, run: str, slot: int, task: int, attempt: int) -> str:
    """`run` is of the query, new with each start. So a task of a driver that died has another name than any
    of the next, and the names of one run are used over and over again."""
    return f"{_PREFIX}/{sink}/{run}/{slot}/{task}/{attempt}"


def own_id(name: str, execution: int) -> str:
    """For a task that finds another one at work under its name. This one is nobody else's, and used once."""
    return f"{name}/{execution}"


def pattern_of_tasks(sink: str, run: str | None = None) -> str:
    """A regular expression for the ids of all tasks of a sink, or of one run; RE2 and Python agree on it."""
    prefix = f"{_PREFIX}/{sink}/" if run is None else f"{_PREFIX}/{sink}/{run}/"
    return re.sub(r"([^A-Za-z0-9/_-])", r"\\\1", prefix) + ".*"


def decision_key(sink: str) -> bytes:
    return sink.encode()


def ended_key(sink: str) -> bytes:
    return f"{sink}/ended".encode()


def job_query(job: str) -> str:
    """What stands for the query in the decision of a job."""
    return f"{_JOB}{job}"


def job_of(query: str) -> str:
    return query.removeprefix(_JOB)


def sink_id_from(checkpoint: str) -> str:
    """A query that names no sink is known by its checkpoint."""
    return "checkpoint-" + sha256(checkpoint.rstrip("/").encode()).hexdigest()[:24]
