"""Builds the site: `python -m docs.tooling.site [DIRECTORY]`; by default build/site/html/<minor version>."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

from docs.tooling.site import command_reference, metric_reference, python_reference
from docs.tooling.site.checks import broken, foreign
from docs.tooling.site.pages import ROOT
from docs.tooling.site.staging import stage

from headrace import __version__

HERE = Path(__file__).parent
LISTED = """\
- [Commands](commands/index.md): what `--help` says of each of them.
- [Exported metrics](exported-metrics.md): every name, with its kind and labels.
- [Python interface](python.md): `headrace.testing`, `headrace.spark`, `headrace.audit`.
"""


def build(output: Path) -> int:
    """Sphinx's exit code: a warning is an error."""
    source = ROOT / "build" / "site" / "source"
    written = {
        **command_reference.render(),
        PurePosixPath("exported-metrics.md"): metric_reference.render(),
        PurePosixPath("python.md"): python_reference.render(),
    }
    stage(source, written, LISTED)
    shutil.rmtree(output, ignore_errors=True)  # a page that is gone is not checked, and not shown
    caches = ROOT / "build" / "site" / "doctrees"
    options = ["-W", "--keep-going", "-q", "-E", "-b", "html", "-c", str(HERE), "-d", str(caches)]
    code = subprocess.run([sys.executable, "-m", "sphinx", *options, str(source), str(output)]).returncode
    if code == 0:
        # Sphinx takes along what Markdown embeds; pictures for light and dark pages are written as HTML.
        shutil.copytree(ROOT / "docs" / "img", output / "img")
    return code


def main() -> int:
    minor = ".".join(__version__.split(".")[:2])
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site" / "html" / minor
    code = build(output)
    if code != 0:
        return code
    wrong = [
        *(f"from another host: {found}" for found in foreign(output)),
        *(f"leads nowhere: {found}" for found in broken(output)),
    ]
    sys.stdout.write("".join(f"{line}\n" for line in wrong) or f"{output}/index.html\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
