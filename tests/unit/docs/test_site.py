"""The documents as a site, without building it: every page has its place, and its links stay true there."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import click
import pytest
from docs.tooling.site import command_reference, metric_reference
from docs.tooling.site.checks import broken, foreign
from docs.tooling.site.links import links, rewritten
from docs.tooling.site.pages import ROOT, on_the_site, pages
from docs.tooling.site.staging import GENERATED, stage, with_menus

from headrace.cli.main import cli
from tests.unit.metrics.test_metrics_page import PAGE as METRICS_PAGE


def test_every_page_is_in_a_menu(tmp_path: Path) -> None:
    """Whoever adds a page to docs/ lists it in docs/README.md, or in the index of its folder."""
    stage(tmp_path, {}, "")
    text = "".join(path.read_text() for path in tmp_path.rglob("*.md"))
    menus = {line.strip(" >").rpartition("<")[2] for line in text.splitlines() if "/" in line}
    lonely = [
        str(source)
        for source, target in pages()
        if f"/{target.with_suffix('')}" not in menus and str(target) != "index.md"
    ]
    assert [page for page in lonely if not page.startswith("examples/")] == []


def test_the_first_page_has_a_place_for_what_code_writes() -> None:
    assert GENERATED in (ROOT / "docs/README.md").read_text()


@pytest.mark.parametrize(
    ("source", "link", "there"),
    [
        ("README.md", "[o](docs/operations.md#stop)", "[o](operations.md#stop)"),
        ("docs/pipeline/lake.md", "[s](../security.md#spark)", "[s](../security.md#spark)"),
        ("docs/adr/0008-durability.md", "[d](README.md)", "[d](index.md)"),
        ("docs/README.md", "[a](../ARCHITECTURE.md)", "[a](architecture.md)"),
        ("ARCHITECTURE.md", "![p](docs/img/data-flow.svg)", "![p](img/data-flow.svg)"),
        ("docs/pipeline/sink.md", "[t](../../tests/ports.py)", "t (`tests/ports.py`)"),
        ("docs/testing.md", "[u](https://example.org/x)", "[u](https://example.org/x)"),
        ("README.md", '<img src="docs/img/data-flow.svg">', '<img src="img/data-flow.svg">'),
        ("README.md", "`[no](docs/link.md)`", "`[no](docs/link.md)`"),
        ("README.md", "```\n[no](docs/link.md)\n```", "```\n[no](docs/link.md)\n```"),
        ("README.md", "[![p](docs/img/a.svg)](docs/benchmarks.md)", "[![p](img/a.svg)](benchmarks.md)"),
    ],
)
def test_a_link_leads_on_the_site_where_it_leads_in_the_repository(
    source: str, link: str, there: str
) -> None:
    page = PurePosixPath(source)
    target = on_the_site(page)
    assert target is not None
    assert rewritten(link, page, target) == there


def test_a_menu_has_the_links_of_its_heading_in_order() -> None:
    text = "# All\n\n[not](d.md)\n\n## Tutorials\n\n- [One](a.md)\n- [Two](b/c.md#x), [out](https://e.org/d.md)\n"
    menu, found = with_menus(PurePosixPath("index.md"), text, set())
    assert found == {PurePosixPath("a.md"), PurePosixPath("b/c.md")}
    assert menu.endswith(":caption: Tutorials\n\nOne </a>\nTwo </b/c>\n```\n\n")
    assert links(text)[0] == ("not", "d.md")


def test_every_command_has_its_section() -> None:
    text = "".join(command_reference.render().values())

    def walk(command: click.Command, context: click.Context) -> list[str]:
        if not isinstance(command, click.Group):
            return [context.command_path]
        found = []
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            found += walk(child, click.Context(child, parent=context, info_name=name))
        return found

    paths = walk(cli, click.Context(cli, info_name="headrace"))
    assert len(paths) > 60
    assert [path for path in paths if f"# `{path}`\n" not in text] == []


def test_every_exported_metric_is_in_the_reference() -> None:
    text = metric_reference.render()
    named = {
        line.split("`")[1] for line in METRICS_PAGE.read_text().splitlines() if line.startswith("| `kafka_")
    }
    assert [name for name in named if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example.org/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/a.css">',
        '<img src="https://example.org/badge.svg">',
        '<source srcset="a.png, https://example.org/b.png 2x">',
        '<div style="background: url(https://example.org/a.png)"></div>',
    ],
)
def test_what_comes_from_another_host_is_found(tmp_path: Path, html: str) -> None:
    (tmp_path / "a.html").write_text(html)
    assert len(list(foreign(tmp_path))) == 1


def test_a_style_that_comes_from_another_host_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text('@import "https://example.org/a.css"; a { color: red }')
    assert list(foreign(tmp_path)) == ["a.css: https://example.org/a.css"]


def test_a_link_for_readers_may_lead_to_another_host(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="https://example.org/">x</a><link rel="canonical" href="//e.org">'
    )
    assert list(foreign(tmp_path)) == []
    assert list(broken(tmp_path)) == []


@pytest.mark.parametrize(
    ("link", "holds"),
    [("b.html", True), ("b.html#x", True), ("#y", True), ("c.html", False), ("b.html#z", False)],
)
def test_a_link_inside_the_site_leads_somewhere(tmp_path: Path, link: str, holds: bool) -> None:
    (tmp_path / "a.html").write_text(f'<p id="y"><a href="{link}">l</a></p>')
    (tmp_path / "b.html").write_text('<p id="x"></p>')
    assert (list(broken(tmp_path)) == []) is holds
