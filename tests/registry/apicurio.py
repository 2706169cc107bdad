"""`python -m tests.registry.apicurio`: the table of evolution, put to another maker's registry.

Apicurio Registry speaks the same REST interface (ccompat, version 7). It comes from Maven Central and needs
Java 25 (JAVA_25_HOME, or one below /usr/lib/jvm). Not a part of the tests: its rules for JSON Schema and
Protobuf are its own, so that differences are looked at by a person. The exit status is 1 if there is one that
nobody has looked at.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.apache_kafka import CACHE
from tests.ports import own_port
from tests.registry.evolution.case import Case
from tests.registry.evolution_cases import CASES

VERSION = "3.3.3"
_START_SECONDS = 300.0
_HOME = Path.home() / ".m2/repository/io/apicurio/apicurio-registry-app" / VERSION

#: Verdicts in which Apicurio differs, each with the reason why ours stays as it is.
EXPLAINED = {
    "json: a property of any value is added (BACKWARD)": "it takes all that was taken before",
    "json: a required property with a default is added to a closed object (BACKWARD)": "Confluent's rule",
    "json: a property with a default becomes required (BACKWARD)": "Confluent's rule",
    "json: null is allowed too (BACKWARD)": "a type more takes all that was taken before",
    "json: a type becomes one of several (BACKWARD)": "an alternative more takes all that was taken before",
}
_PROTOBUF = "Apicurio's own rules: names and exact types must stay, messages may go; ours are Confluent's"


def _java() -> str:
    homes = [os.environ.get("JAVA_25_HOME", ""), *map(str, sorted(Path("/usr/lib/jvm").glob("*25*")))]
    for home in homes:
        if home and (Path(home) / "bin/java").exists():
            return str(Path(home) / "bin/java")
    raise SystemExit("Apicurio needs Java 25: set JAVA_25_HOME to one")


def _unpacked() -> Path:
    """The server's files, brought by Maven once."""
    directory = CACHE / f"apicurio-{VERSION}"
    if not (directory / ".ok").exists():
        archive = _HOME / f"apicurio-registry-app-{VERSION}-all.tar.gz"
        if not archive.exists():
            artifact = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
            subprocess.run(
                ["mvn", "-q", "dependency:get", f"-Dartifact={artifact}", "-Dtransitive=false"], check=True
            )
        directory.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as packed:
            packed.extractall(directory, filter="data")
        (directory / ".ok").touch()
    return directory


@contextmanager
def apicurio() -> Iterator[str]:
    """The address of its ccompat interface. What it keeps is in memory."""
    directory, port = _unpacked(), own_port()
    command = [
        _java(),
        "-Xmx768m",
        "-XX:+UseSerialGC",
        f"-Dquarkus.http.port={port}",
        "-Dquarkus.http.host=127.0.0.1",
        "-jar",
        "quarkus-run.jar",
    ]
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=directory)
    try:
        url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                _ask("GET", f"{url}/schemas/types")
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"Apicurio did not start, see {directory / 'server.log'}") from None
                time.sleep(1)
        yield url
    finally:
        process.terminate()
        process.wait(60)


def _ask(method: str, url: str, body: object = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.loads(reply.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(errors="replace")


def _told(schema: str, kind: str) -> str:
    """Apicurio takes a document for a JSON Schema only if it says so."""
    document = json.loads(schema) if kind == "JSON" else None
    if not isinstance(document, dict):
        return schema
    return json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", **document})


def _reason(case: Case, level: str) -> str | None:
    return EXPLAINED.get(f"{case.id} ({level})", _PROTOBUF if case.type == "PROTOBUF" else None)


def verdict(url: str, subject: str, case: Case, level: str) -> bool | str:
    """Whether it takes the new schema after the old one; what it says where it says neither."""
    _ask("PUT", f"{url}/config/{subject}", {"compatibility": level})
    old, new = ({"schema": _told(text, case.type), "schemaType": case.type} for text in (case.old, case.new))
    status, answer = _ask("POST", f"{url}/subjects/{subject}/versions", old)
    if status != 200:
        return f"the old schema is refused: {status} {answer}"
    _ask("PUT", f"{url}/config/{subject}", {"compatibility": level})
    status, answer = _ask("POST", f"{url}/compatibility/subjects/{subject}/versions/latest", new)
    return answer["is_compatible"] if status == 200 else f"{status} {answer}"


def main() -> int:
    differing = unexplained = 0
    with apicurio() as url:
        for number, case in enumerate(CASES):
            for level, ours in (("BACKWARD", case.backward), ("FORWARD", case.forward)):
                theirs = verdict(url, f"case-{number}-{level.lower()}", case, level)
                if theirs == ours:
                    continue
                differing += 1
                reason = _reason(case, level)
                unexplained += reason is None
                print(
                    f"{case.id} ({level}): ours {ours}, theirs {theirs}" + (f": {reason}" if reason else "")
                )
    print(f"{2 * len(CASES)} verdicts, {differing} differ, {unexplained} of them unexplained")
    return min(unexplained, 1)


if __name__ == "__main__":
    sys.exit(main())
