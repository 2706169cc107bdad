"""The bill of materials (SBOM, CycloneDX): what an installation consists of, at the versions of `uv.lock`.

    python -m release.bill FOLDER        of the package, as the wheel has it in `.dist-info/sboms`

The wheel holds no foreign code: the bill names what pip installs beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from release.pythons import run, uv

VARIABLE: Final = "HEADRACE_SBOM"
"""Tells `hatch_build.py` which file to put into the wheel."""
NAME: Final = "headrace.cdx.json"


def write(project: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    requirements = folder / "requirements.txt"
    run(
        [
            *(uv(), "export", "--quiet", "--locked", "--no-default-groups", "--no-emit-project"),
            *("--no-hashes", "--no-annotate", "--no-header"),
            *("--project", str(project), "--output-file", str(requirements)),
        ]
    )
    path = folder / NAME
    _written(["requirements", str(requirements)], project, path)
    return path


def write_environment(python: str, project: Path, path: Path) -> Path:
    """Of everything that is installed beside that Python."""
    _written(["environment", python], project, path)
    return path


def _written(source: list[str], project: Path, path: Path) -> None:
    described = ["--pyproject", str(project / "pyproject.toml"), "--mc-type", "application"]
    form = ["--output-reproducible", "--output-format", "JSON", "--output-file", str(path)]
    run([sys.executable, "-m", "cyclonedx_py", *source, *described, *form])


if __name__ == "__main__":
    print(write(Path(__file__).resolve().parents[1], Path(sys.argv[1])))
