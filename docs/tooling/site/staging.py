"""Lays the pages out as the site has them: copies with their links made true, menus, and what code writes.

An index page is an ordinary page with lists of links, which a code host shows well. Each of its headings with
pages below becomes a part of the site's menu, in the order of the page.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from docs.tooling.site.links import links, rewritten
from docs.tooling.site.pages import ROOT, pages

_HEADING: Final = re.compile(r"^## +(.+?) *$", re.MULTILINE)
_PARENTS: Final = {
    "index.md": "",
    "pipeline.md": "pipeline",
    "use-cases.md": "examples",
    "adr/index.md": "adr",
    "invariants/index.md": "invariants",
    "commands/index.md": "commands",
}
"""Pages whose links are their parts, those in the menu below them, and the folder of the parts."""
GENERATED: Final = "<!-- on the site: written from the code -->"
"""Where the first page has a list of what exists on the site alone."""


def stage(directory: Path, written: Mapping[PurePosixPath, str], listed: str) -> None:
    """`written` are pages that code writes; `listed` names them in the index."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    shutil.copytree(ROOT / "docs" / "img", directory / "img")
    texts = {target: rewritten((ROOT / source).read_text(), source, target) for source, target in pages()}
    texts.update(written)
    index = PurePosixPath("index.md")
    texts[index] = texts[index].replace(GENERATED, listed)
    in_a_menu: set[PurePosixPath] = set()
    for target in sorted(texts, key=lambda page: (str(page) != "index.md", str(page))):
        if str(target) in _PARENTS:
            texts[target], children = with_menus(target, texts[target], in_a_menu)
            in_a_menu |= children
    for target, text in texts.items():
        # An example that no index lists is reached from the page that tells of it.
        lonely = target.parts[0] == "examples" and target not in in_a_menu
        path = directory / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\norphan: true\n---\n\n{text}" if lonely else text)


def with_menus(page: PurePosixPath, text: str, taken: set[PurePosixPath]) -> tuple[str, set[PurePosixPath]]:
    """The page with a hidden menu under each heading, and which pages those have. A page has one place."""
    parts = _HEADING.split(text)
    result, found = [parts[0]], set[PurePosixPath]()
    captioned = page.name == "index.md" and page.parent == PurePosixPath(".")
    sections = [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]
    for number, (heading, body) in enumerate(sections):
        children = []
        for words, link in links(body) if heading or not captioned else ():
            child = PurePosixPath(posixpath.normpath(str(page.parent / link.partition("#")[0])))
            beside = captioned or str(child.parent) == _PARENTS[str(page)]
            if child.suffix == ".md" and beside and child not in taken | found | {page} and "://" not in link:
                place = f"/{child.with_suffix('')}"
                children.append(f"{words} <{place}>" if captioned else place)
                found.add(child)
        if number:
            result.append(f"## {heading}{body}")
        if children:
            caption = f":caption: {heading}\n" if captioned else ""
            result.append(
                "\n```{toctree}\n:hidden:\n:titlesonly:\n"
                + caption
                + "\n"
                + "\n".join(children)
                + "\n```\n\n"
            )
    return "".join(result), found
