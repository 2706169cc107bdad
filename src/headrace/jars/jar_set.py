"""Java programs that run beside Headrace: which jars they need, where they lie, and how Maven brings them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

from headrace.core.errors import HeadraceError

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


class JarSet:
    """The jars that one pom.xml names, all of them: what others need is named there as well."""

    def __init__(self, descriptor: Path, *, variable: str, folder: str, command: str) -> None:
        """`variable` names their directory; else it is `folder` of the cache. `command` brings them."""
        self._descriptor = descriptor
        self.variable = variable
        self._folder = folder
        self.command = command

    def needed(self) -> list[Jar]:
        """What pom.xml names, with its properties filled in."""
        root = ElementTree.parse(self._descriptor).getroot()
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

    def default_directory(self) -> Path:
        if given := os.environ.get(self.variable):
            return Path(given)
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(cache) / "headrace" / self._folder

    def missing(self, directory: Path) -> list[Jar]:
        return [jar for jar in self.needed() if not (directory / jar.file_name).is_file()]

    def find(self, directory: Path | str | None = None) -> list[Path]:
        """The files. Raises JarsMissing."""
        where = self.default_directory() if directory is None else Path(directory)
        if lacking := self.missing(where):
            names = ", ".join(jar.file_name for jar in lacking)
            raise JarsMissing(
                f"{where} lacks {names}. Bring them there with: {self.command} --directory {where}\n"
                f"or point {self.variable} to a directory that has them."
            )
        return [where / jar.file_name for jar in self.needed()]

    def fetch(self, directory: Path, *, maven: Sequence[str] = ("mvn",)) -> list[Path]:
        """Lets Maven bring what is missing. Its settings (mirrors, proxies) are the user's own."""
        if self.missing(directory):
            directory.mkdir(parents=True, exist_ok=True)
            command = [
                *maven, "-q", "-B", "-f", str(self._descriptor),
                "dependency:copy-dependencies", f"-DoutputDirectory={directory.absolute()}",
            ]  # fmt: skip
            try:
                ran = subprocess.run(command, capture_output=True, text=True, check=False)
            except FileNotFoundError:
                raise JarsMissing(
                    f"{maven[0]} is not installed: install Maven (Debian: apt-get install maven), "
                    f"or copy {', '.join(jar.file_name for jar in self.missing(directory))} to {directory}"
                ) from None
            if ran.returncode != 0:
                said = [line for line in ran.stdout.splitlines() if "ERROR" in line]
                raise JarsMissing("Maven could not bring the jars:\n" + "\n".join(said[:5] or [ran.stderr]))
        return self.find(directory)
