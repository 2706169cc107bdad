"""Writes the table of differences into docs/compatibility.md: python -m tests.oracle.connect.document"""

from __future__ import annotations

from pathlib import Path

from tests.oracle.connect.differences import DIFFERENCES

PAGE = Path(__file__).parents[3] / "docs" / "compatibility.md"
BEGIN = "<!-- differences of Connect: written by `python -m tests.oracle.connect.document` -->"
END = "<!-- end of differences of Connect -->"


def render() -> str:
    lines = ["| Calls | Difference | Why |", "|---|---|---|"]
    lines += [f"| {one.api} | {one.title} | {one.reason} |" for one in DIFFERENCES]
    return "\n".join(lines)


def with_table(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{render()}\n{END}{after}"


def main() -> None:
    PAGE.write_text(with_table(PAGE.read_text()))


if __name__ == "__main__":
    main()
