"""Two sets of answers beside each other: which fields differ, and which of those have a reason."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.oracle.differences import ABSENT, Difference
from tests.oracle.plain import Flat


class Found(NamedTuple):
    """One field that is not the same."""

    step: str
    path: str
    kafka: object
    headrace: object


def compare(kafka: dict[str, Flat], headrace: dict[str, Flat]) -> list[Found]:
    found = []
    for step in {**kafka, **headrace}:
        ours, theirs = headrace.get(step, {}), kafka.get(step, {})
        for path in sorted({**theirs, **ours}):
            pair = theirs.get(path, ABSENT), ours.get(path, ABSENT)
            if pair[0] != pair[1]:
                found.append(Found(step, path, *pair))
    return found


def require_reasons(found: Sequence[Found], differences: Sequence[Difference]) -> None:
    unexplained = [one for one in found if not any(known.explains(*one) for known in differences)]
    shown = "\n".join(
        f"  {one.step} | {one.path}: Kafka {one.kafka!r}, Headrace {one.headrace!r}"
        for one in unexplained[:80]
    )
    assert not unexplained, f"{len(unexplained)} differences without a reason:\n{shown}"


def stale(found: Sequence[Found], differences: Sequence[Difference]) -> list[Difference]:
    """Those that no longer occur."""
    return [known for known in differences if not any(known.explains(*one) for one in found)]


def report(found: dict[str, list[Found]], variable: str) -> None:
    """Into the file that the environment variable names, if it is set."""
    path = os.environ.get(variable)
    if path:
        flat = [{"script": name, **one._asdict()} for name, all_found in found.items() for one in all_found]
        Path(path).write_text(json.dumps(flat, indent=1, default=str))
