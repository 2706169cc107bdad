"""The jars that a session needs beside PySpark's own: which they are, where they lie, how to get them.

They are named once, in pom.xml beside this file. Maven brings them into a directory; where Spark itself may
reach a whole Maven repository, their coordinates do as well.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

from headrace.core.errors import HeadraceError

DIRECTORY_VARIABLE: Final = "HEADRACE_SPARK_JARS"
_DESCRIPTOR: Final = Path(__file__).with_name("pom.xml")
_NAMESPACE: Final = {"pom": "http://maven.apache.org/POM/4.0.0"}


class JarsMissing(HeadraceError):
    """Says which, and what to do."""


class Jar(NamedTuple):
    group: str
    artifact: str
    version: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def needed() -> list[Jar]:
    """What pom.xml names, with its properties filled in."""
    root = ElementTree.parse(_DESCRIPTOR).getroot()
    named = root.find("pom:properties", _NAMESPACE)
    assert named is not None
    values = {each.tag.partition("}")[2]: each.text or "" for each in named}

    def text(dependency: ElementTree.Element, part: str) -> str:
        given = dependency.findtext(f"pom:{part}", "", _NAMESPACE)
        for name, value in values.items():
            given = given.replace(f"${{{name}}}", value)
        return given

    return [
        Jar(text(each, "groupId"), text(each, "artifactId"), text(each, "version"))
        for each in root.iterfind("pom:dependencies/pom:dependency", _NAMESPACE)
    ]


def default_directory() -> Path:
    """Where HEADRACE_SPARK_JARS says, else in the user's cache."""
    if given := os.environ.get(DIRECTORY_VARIABLE):
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "headrace" / "spark-jars"


def missing(directory: Path) -> list[Jar]:
    return [jar for jar in needed() if not (directory / jar.file_name).is_file()]


def find(directory: Path | str | None = None) -> list[Path]:
    """The files. Raises JarsMissing."""
    where = default_directory() if directory is None else Path(directory)
    if lacking := missing(where):
        names = ", ".join(jar.file_name for jar in lacking)
        raise JarsMissing(
            f"{where} lacks {names}. Bring them there with: headrace spark jars --directory {where}\n"
            f"or point {DIRECTORY_VARIABLE} to a directory that has them."
        )
    return [where / jar.file_name for jar in needed()]


def fetch(directory: Path, *, maven: Sequence[str] = ("mvn",)) -> list[Path]:
    """Lets Maven bring what is missing. Its settings (mirrors, proxies) are the user's own."""
    if missing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        command = [
            *maven, "-q", "-B", "-f", str(_DESCRIPTOR),
            "dependency:copy-dependencies", f"-DoutputDirectory={directory.absolute()}",
        ]  # fmt: skip
        try:
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise JarsMissing(
                f"{maven[0]} is not installed: install Maven (Debian: apt-get install maven), "
                f"or copy {', '.join(jar.file_name for jar in missing(directory))} to {directory}"
            ) from None
        if ran.returncode != 0:
            said = [line for line in ran.stdout.splitlines() if "ERROR" in line]
            raise JarsMissing("Maven could not bring the jars:\n" + "\n".join(said[:5] or [ran.stderr]))
    return find(directory)
