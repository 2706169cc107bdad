"""Writes the tables of APIs and of differences into docs/compatibility.md: python -m tests.oracle.document"""

from __future__ import annotations

from pathlib import Path

from headrace.broker.requests.apis import APIS
from tests.oracle.authorization.differences import DIFFERENCES as BY_RIGHTS
from tests.oracle.differences import DIFFERENCES

PAGE = Path(__file__).parent.parent.parent / "docs" / "compatibility.md"
BEGIN = "<!-- differences: written by `python -m tests.oracle.document` -->"
END = "<!-- end of differences -->"
BEGIN_APIS = "<!-- APIs: written by `python -m tests.oracle.document` -->"
END_APIS = "<!-- end of APIs -->"


def render() -> str:
    lines = ["| API | Difference | Why |", "|---|---|---|"]
    lines += [f"| {one.api} | {one.title} | {one.reason} |" for one in (*DIFFERENCES, *BY_RIGHTS)]
    return "\n".join(lines)


def render_apis() -> str:
    lines = ["| Key | API | Versions |", "|--:|---|---|"]
    for api in sorted(APIS, key=lambda each: each.key):
        if not api.internal:
            name = api.request.__name__.removesuffix("Request")
            versions = f"{api.lowest} to {api.highest}" if api.highest > api.lowest else str(api.lowest)
            lines.append(f"| {int(api.key)} | {name} | {versions} |")
    return "\n".join(lines)


def with_tables(page: str) -> str:
    page = _with(page, BEGIN_APIS, render_apis(), END_APIS)
    return _with(page, BEGIN, render(), END)


def _with(page: str, begin: str, table: str, end: str) -> str:
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{table}\n{end}{after}"


def main() -> None:
    PAGE.write_text(with_tables(PAGE.read_text()))


if __name__ == "__main__":
    main()
