"""What the last step of a table changed, kept beside its checkpoint for whoever asks later."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from headrace.spark.lake.files import Files


@dataclass(frozen=True)
class LastStep:
    """Keys, not records: of several records of one key in a batch the last counts."""

    step: int
    ended_ms: int
    upserts: int
    deletes: int
    bad: int
    """Keys with records that cannot be read."""


def _file(state: str) -> str:
    return f"{state}/step.json"


def store(files: Files, state: str, last: LastStep) -> None:
    files.replace(_file(state), json.dumps(asdict(last)))


def fetch(files: Files, state: str) -> LastStep | None:
    text = files.read(_file(state))
    return None if text is None else LastStep(**json.loads(text))
