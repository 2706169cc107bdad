"""An archive of the classes that Spark loads, which Java maps instead of parsing: drivers start sooner.

    headrace spark archive

It lies beside the jars, and `session` takes the one that it finds there. Java takes an archive only with the
class path and the Java that it was made with, and does without otherwise: nothing depends on it but time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from headrace.core.errors import HeadraceError
from headrace.spark import jars

SECONDS: Final = 600
#: Java would tell of an archive that does not suit on the standard output, among what a command prints.
_IN_SILENCE: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


class NoArchive(HeadraceError):
    """Says what kept it from being made."""


def path(jar_directory: Path | str | None = None) -> Path:
    """Another one for another Java, or PySpark, or installation of it."""
    where = jars.default_directory() if jar_directory is None else Path(jar_directory)
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    java = java.resolve()
    package = find_spec("pyspark")
    made_of = f"{java} {java.stat().st_mtime if java.exists() else 0}"
    if package is not None and package.origin is not None:
        # Java compares the time of each jar: PySpark that was installed again needs another archive.
        files = Path(package.origin).with_name("jars").glob("*.jar")
        newest = max((each.stat().st_mtime_ns for each in files), default=0)
        made_of += f" {package.origin} {version('pyspark')} {newest}"
    return where.absolute() / f"spark-classes-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}.jsa"


def options(jar_directory: Path | str | None = None) -> str:
    """For Java; empty where there is no archive."""
    archive = path(jar_directory)
    return f"-XX:SharedArchiveFile={archive} {_IN_SILENCE}" if archive.exists() else ""


def make(jar_directory: Path | str | None = None) -> Path | None:
    """The archive, made by a Spark that does a little of everything, unless it is there.

    Raises NoArchive. None if another process makes it now: a Spark without it starts sooner than that ends.
    """
    archive = path(jar_directory)
    if archive.exists():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        if not archive.exists():
            with tempfile.TemporaryDirectory(dir=archive.parent) as directory:
                fresh = _run(Path(directory) / archive.name, jar_directory)
                _sync(fresh)  # one that a loss of power has cut short would kill every Java that maps it
                fresh.rename(archive)
    return archive


def _sync(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def _run(fresh: Path, jar_directory: Path | str | None) -> Path:
    program = f"from headrace.spark.class_loading import run; run({str(fresh)!r})"
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    if jar_directory is not None:
        environment[jars.DIRECTORY_VARIABLE] = str(Path(jar_directory).absolute())
    environment["PYTHONPATH"] = os.pathsep.join(each or os.getcwd() for each in sys.path)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=fresh.parent, env=environment, capture_output=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NoArchive(
            f"Spark did not end within {SECONDS} s. Try again when this machine has time."
        ) from None
    if done.returncode != 0 or not fresh.exists():
        told = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
        raise NoArchive(
            "Spark did not write it. Look for the cause with: headrace spark doctor\n" + "\n".join(told)
        )
    return fresh
