"""Writes the list of differences into docs/compatibility.md. Run: python -m tests.oracle.document"""

from __future__ import annotations

from pathlib import Path

from tests.oracle.differences import DIFFERENCES

PAGE = Path(__file__).parent.parent.parent / "docs" / "compatibility.md"
BEGIN = "<!-- differences: written by `python -m tests.oracle.document` -->"
END = "<!-- end of differences -->"


def render() -> str:
    lines = ["| API | Difference | Why |", "|---|---|---|"]
    lines += [f"| {one.api} | {one.title} | {one.reason} |" for one in DIFFERENCES]
    return "\n".join(lines)


def with_differences(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{render()}\n{END}{after}"


def main() -> None:
    PAGE.write_text(with_differences(PAGE.read_text()))


if __name__ == "__main__":
    main()
