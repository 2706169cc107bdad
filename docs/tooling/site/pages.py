"""Which files of the repository are pages, and where the site has them.

The repository is written for readers on a code host: documents lie where people look for them there. On the
site `docs/` is the root, and each index is an `index` page. Everything else follows from this one function.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
_DOCS: Final = PurePosixPath("docs")
_FROM_THE_ROOT: Final = {
    "README.md": "readme.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
}


def on_the_site(source: PurePosixPath) -> PurePosixPath | None:
    """Where the site has a file of the repository; None: nowhere."""
    if str(source) in _FROM_THE_ROOT:
        return PurePosixPath(_FROM_THE_ROOT[str(source)])
    if source.parts[0] == "examples" and source.name == "README.md" and len(source.parts) == 3:
        return PurePosixPath("examples", f"{source.parts[1]}.md")
    if _DOCS not in source.parents or source.parts[1] == "tooling":
        return None
    below = source.relative_to(_DOCS)
    return below.with_name("index.md") if below.name == "README.md" else below


def pages(root: Path = ROOT) -> Iterator[tuple[PurePosixPath, PurePosixPath]]:
    """Each page: its path in the repository, its path on the site."""
    found = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "examples").glob("*/README.md")]
    for path in sorted(found):
        source = PurePosixPath(path.relative_to(root).as_posix())
        target = on_the_site(source)
        if target is not None:
            yield source, target
