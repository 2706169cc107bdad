"""Whether this checkout can be tagged as a release: `poe release-check`.

It looks and changes nothing. If all is well it prints the command that makes the tag, for a person to run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

UNRELEASED: Final = "Unreleased"
_HEADING: Final = re.compile(r"^## \[?([^\]\s]+)\]?", re.MULTILINE)
_OWN_VERSION: Final = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


def problems(project: Path) -> list[str]:
    """What keeps it from being tagged."""
    version = version_of(project)
    found = []
    own = _OWN_VERSION.search((project / "src" / "headrace" / "__init__.py").read_text())
    if own is None or own[1] != version:
        found.append(f"pyproject.toml says {version}, headrace/__init__.py {own[1] if own else 'nothing'}")
    headings = _HEADING.findall((project / "CHANGELOG.md").read_text())
    newest = headings[0] if headings else "nothing"
    if newest != version:
        hint = f": name it {version}, with its date" if newest == UNRELEASED else ""
        found.append(f"pyproject.toml says {version}, the newest heading of CHANGELOG.md {newest}{hint}")
    changed = _git(project, "status", "--porcelain")
    if changed:
        found.append(f"the checkout has changes that are not committed:\n{changed}")
    if _git(project, "tag", "--list", tag_of(version)):
        found.append(f"the tag {tag_of(version)} exists already")
    return found


def version_of(project: Path) -> str:
    settings = tomllib.loads((project / "pyproject.toml").read_text())
    return str(settings["project"]["version"])


def tag_of(version: str) -> str:
    return f"v{version}"


def _git(project: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(project), *arguments], check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout.rstrip()


def main() -> int:
    project = Path(__file__).resolve().parents[1]
    found = problems(project)
    for problem in found:
        print(f"not yet: {problem}", file=sys.stderr)
    if found:
        return 1
    tag = tag_of(version_of(project))
    print(f"git tag --annotate {tag} --message 'Headrace {tag}' && git push origin {tag}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
