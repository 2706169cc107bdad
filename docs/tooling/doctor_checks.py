"""Writes the table of checks into docs/doctor.md, from the list that `headrace doctor` runs."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from headrace.doctor.checks.registry import CHECKS

PAGE = Path(__file__).parents[1] / "doctor.md"
_BEGIN, _END = "<!-- checks: begin -->\n", "<!-- checks: end -->"


def table() -> str:
    lines = []
    for group, checks in groupby(CHECKS, key=lambda check: check.group):
        lines += ["", f"### {group}", "", "| Check | What it finds | Why that matters | What mends it |"]
        lines.append("|---|---|---|---|")
        lines += [f"| `{each.name}` | {each.finds} | {each.why} | {each.mend} |" for each in checks]
    return "\n".join(lines[1:]) + "\n"


def render() -> str:
    """The page with the table of today."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    return before + _BEGIN + table() + _END + rest.partition(_END)[2]


if __name__ == "__main__":
    PAGE.write_text(render())
