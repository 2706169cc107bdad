"""Is this machine ready for the pipeline? One finding for each thing, and for each that is wrong what to do.

Nothing here imports PySpark: whoever has not installed it yet needs the doctor most.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

from headrace.spark import jars
from headrace.spark.requirements import INSTALL, unmet, wanted_packages

#: What Spark 4.1 is tested with.
JAVA_RELEASES: Final = (17, 21)
#: A cold start, a slow machine, four jobs.
ROUND_TRIP_SECONDS = 300.0
_PARTING_SECONDS: Final = 30.0
_ANSWER_SECONDS: Final = 30.0
_JAVA_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)([^"]*)"')
_ABOUT_A_PYTHON: Final = """
import json, sys
from importlib import metadata
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps({"version": list(sys.version_info[:3]), "packages": found}))
"""


class Finding(NamedTuple):
    subject: str
    ok: bool
    found: str
    advice: str = ""
    """What to do; empty if all is well."""


def examine(
    *,
    jar_directory: Path | None = None,
    bootstrap: str | None = None,
    client_file: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Iterator[Finding]:
    """The findings, one by one as they are made. With `bootstrap` a round trip through Spark is the last.

    `client_file`: how to connect, in Kafka's client properties.
    """
    environ = os.environ if environ is None else environ
    directory = jar_directory or jars.default_directory()
    sound = True
    for check in _checks(directory, environ):
        finding = check()
        sound = sound and finding.ok
        yield finding
    if bootstrap is None:
        return
    if not sound:
        yield Finding("round trip", False, "not tried", "repair what is wrong above, then ask again")
        return
    yield from _round_trip(bootstrap, directory, environ, client_file)


def _checks(directory: Path, environ: Mapping[str, str]) -> list[Callable[[], Finding]]:
    return [
        partial(check_java, environ),
        partial(check_python, sys.version_info[:3]),
        *(partial(check_package, name) for name in wanted_packages()),
        partial(check_spark_home, environ),
        partial(check_worker_python, environ),
        partial(check_jars, directory),
        partial(check_host_name, environ),
    ]


def check_java(environ: Mapping[str, str]) -> Finding:
    """The one that Spark would run: JAVA_HOME has the first word, also where it is wrong."""
    advice = "install a JDK 17 (Debian: apt-get install openjdk-17-jre-headless), or point JAVA_HOME to one"
    home = environ.get("JAVA_HOME", "")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else environ.get("PATH"))
    if java is None:
        where = f"JAVA_HOME is {home}, where there is no bin/java" if home else "no java in PATH"
        return Finding("java", False, where, advice)
    try:
        ran = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("java", False, f"{java} does not run: {error}", advice)
    said = _JAVA_VERSION.search(ran.stderr) or _JAVA_VERSION.search(ran.stdout)
    if said is None:
        return Finding("java", False, f"{java} does not tell its version", advice)
    release = int(said[1])
    found = f"{said[1]}{said[2]} ({java})"
    if release not in JAVA_RELEASES:
        return Finding("java", False, f"{found}: Spark runs on {_either(JAVA_RELEASES)}", advice)
    return Finding("java", True, found)


def check_python(version: tuple[int, ...]) -> Finding:
    found = f"{_dotted(version)} ({sys.executable})"
    if version < (3, 11):
        return Finding("python", False, f"{found} is too old", "use Python 3.11 or later")
    return Finding("python", True, found)


def check_package(name: str, installed: Callable[[str], str] = metadata.version) -> Finding:
    try:
        version = installed(name)
    except metadata.PackageNotFoundError:
        return Finding(name, False, "not installed", INSTALL)
    if broken := unmet(version, wanted_packages()[name]):
        return Finding(name, False, f"{version}, but the pipeline wants {name}{broken}", INSTALL)
    return Finding(name, True, version)


def check_spark_home(environ: Mapping[str, str]) -> Finding:
    """SPARK_HOME makes PySpark start the JVM from there: two versions in one session fail in strange ways."""
    home = environ.get("SPARK_HOME")
    if not home:
        return Finding("SPARK_HOME", True, "not set: PySpark's own files are used")
    advice = "unset SPARK_HOME, or point it to the same version as PySpark"
    cores = sorted(Path(home, "jars").glob("spark-core_*.jar"))
    if not cores:
        return Finding("SPARK_HOME", False, f"{home} has no jars/spark-core_*.jar", advice)
    version = cores[-1].stem.rpartition("_")[2].partition("-")[2]
    if broken := unmet(version, wanted_packages()["pyspark"]):
        return Finding(
            "SPARK_HOME", False, f"{home} is Spark {version}, but the pipeline wants {broken}", advice
        )
    return Finding("SPARK_HOME", True, f"{home} (Spark {version})")


def check_worker_python(environ: Mapping[str, str]) -> Finding:
    """Executors run it. What the driver pickles, only the same Python can read, with the same packages."""
    subject = "PYSPARK_PYTHON"
    given = environ.get(subject)
    if not given:
        return Finding(subject, True, "not set: a session takes this Python")
    advice = f"unset {subject}, or set it to {sys.executable}"
    about = _ask_python(given, environ)
    if isinstance(about, str):
        return Finding(subject, False, about, advice)
    version, packages = about
    if version[:2] != sys.version_info[:2]:
        found = f"{given} is Python {_dotted(version)}, this is {_dotted(sys.version_info[:3])}"
        return Finding(subject, False, found, advice)
    for name, wanted in wanted_packages().items():
        if name not in packages:
            return Finding(subject, False, f"{given} has no {name}", f"{advice}; or there: {INSTALL}")
        if broken := unmet(packages[name], wanted):
            found = f"{given} has {name} {packages[name]}, but the pipeline wants {broken}"
            return Finding(subject, False, found, f"{advice}; or there: {INSTALL}")
    return Finding(subject, True, f"{given} ({_dotted(version)})")


def _ask_python(path: str, environ: Mapping[str, str]) -> tuple[tuple[int, ...], dict[str, str]] | str:
    """Its version and packages, or why they cannot be told."""
    executable = shutil.which(path, path=environ.get("PATH"))
    if executable is None:
        return f"{path} is not there or cannot be run"
    try:
        ran = subprocess.run(
            [executable, "-c", _ABOUT_A_PYTHON, *wanted_packages()],
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=True,
        )
        told = json.loads(ran.stdout)
        return tuple(told["version"]), dict(told["packages"])
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError):
        return f"{path} does not answer as a Python does"


def check_jars(directory: Path) -> Finding:
    advice = f"headrace spark jars --directory {directory}"
    needed = jars.needed()
    if lacking := jars.missing(directory):
        named = ", ".join(jar.file_name for jar in lacking)
        found = f"{directory} lacks {len(lacking)} of {len(needed)}: {named}"
        return Finding(
            "jars", False, found, f"{advice}, or point {jars.DIRECTORY_VARIABLE} to where they are"
        )
    # A download that was cut short leaves a file whose table of contents is missing.
    if damaged := [jar.file_name for jar in needed if not zipfile.is_zipfile(directory / jar.file_name)]:
        return Finding(
            "jars", False, f"damaged in {directory}: {', '.join(damaged)}", f"delete these, then: {advice}"
        )
    return Finding("jars", True, f"{len(needed)} in {directory}")


def check_host_name(
    environ: Mapping[str, str], resolve: Callable[[str], str] = socket.gethostbyname
) -> Finding:
    """Executors call the driver back under its host's name, unless SPARK_LOCAL_IP names an address."""
    if given := environ.get("SPARK_LOCAL_IP"):
        return Finding("host name", True, f"SPARK_LOCAL_IP is {given}")
    name = socket.gethostname()
    try:
        return Finding("host name", True, f"{name} is {resolve(name)}")
    except OSError:
        advice = "set SPARK_LOCAL_IP=127.0.0.1, or add the name to /etc/hosts"
        return Finding("host name", False, f"{name} does not resolve", advice)


def _round_trip(
    bootstrap: str, directory: Path, environ: Mapping[str, str], client_file: str | None
) -> Iterator[Finding]:
    """In a group of processes of its own: a JVM talks much and may hang, also when its parent is gone.

    Whoever holds the pipe holds the reader, so the end of the trip is the end of the whole group.
    """
    advice = "run `headrace topic list` against the same brokers; then see docs/pipeline.md, Troubles"
    command = [sys.executable, "-m", "headrace.spark.round_trip", bootstrap, str(directory)]
    command += [client_file] if client_file is not None else []
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=dict(environ), process_group=0
        )
        deadline = time.monotonic() + ROUND_TRIP_SECONDS
        watchdogs = [
            # The first lets it delete its topic, the second does not ask.
            threading.Timer(ROUND_TRIP_SECONDS, process.terminate),
            threading.Timer(ROUND_TRIP_SECONDS + _PARTING_SECONDS, _end_group, [process.pid]),
        ]
        for watchdog in watchdogs:
            watchdog.start()
        try:
            with process:
                yield from _findings(process)
        finally:
            for watchdog in watchdogs:
                watchdog.cancel()
            _end_group(process.pid)
        if time.monotonic() >= deadline and process.returncode != 0:
            yield Finding("round trip", False, f"did not end within {ROUND_TRIP_SECONDS:g} s", advice)
        elif process.returncode != 0:
            log.seek(0)
            last = "\n".join(log.read().splitlines()[-10:])
            yield Finding("round trip", False, f"ended with {process.returncode}:\n{last}", advice)


def _findings(process: subprocess.Popen[str]) -> Iterator[Finding]:
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith("["):
                yield Finding(*json.loads(line))
    except BaseException:  # a person who does not want to wait: the caller must not wait for the process
        _end_group(process.pid)
        raise


def _end_group(group: int) -> None:
    """Also a JVM whose Python has ended. A group without processes is what everybody hopes for."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _either(numbers: tuple[int, ...]) -> str:
    return " or ".join(map(str, numbers))
