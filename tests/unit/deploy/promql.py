"""The series and labels that an expression of PromQL names. promtool says whether it is one."""

from __future__ import annotations

import re
from typing import Final

from tests.unit.deploy.exported import SCRAPED, exported

_SERIES: Final = re.compile(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}")
_GROUPED: Final = re.compile(r"\b(?:by|on|without|group_left)\s*\(([^)]*)\)")
_WORD: Final = re.compile(r"\b[a-z]+_\w+\b")
_MATCHER: Final = re.compile(r"(\w+)\s*(=~|!~|!=|=)")
_FUNCTIONS: Final = frozenset(("group_left", "histogram_quantile", "label_values", "predict_linear"))


def series(expression: str) -> set[str]:
    return {name for name, _ in _SERIES.findall(expression)}


def unknown(expression: str, job: str) -> list[str]:
    """What it names that no broker has, and series that it would take of other jobs than `job` matches."""
    wrong = []
    known = set(SCRAPED)
    named = _SERIES.findall(expression)
    for name, matchers in named:
        labels = exported().get(name)
        if labels is None:
            wrong.append(f"nobody exports {name}")
            continue
        known |= labels
        used = {label for label, _ in _MATCHER.findall(matchers)}
        wrong += [f"{name} has no label {label}" for label in sorted(used - labels - SCRAPED)]
        if job not in matchers:
            wrong.append(f"{name} is of any job")
    bare = {word for word in _WORD.findall(re.sub(r'"[^"]*"', "", expression)) if word not in _FUNCTIONS}
    wrong += [f"{word} without a job" for word in sorted(bare - {name for name, _ in named} - known)]
    grouped = {label.strip() for labels in _GROUPED.findall(expression) for label in labels.split(",")}
    return wrong + [f"no series has the label {label}" for label in sorted(grouped - known - {""})]
