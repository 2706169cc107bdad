"""Where the definitions come from: jars of Apache Kafka, fetched by Maven and pinned by checksum.

The versions stand in pom.xml and, as part of the file names, here; a jar with other bytes is refused.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")

WIRE_JARS = {
    "kafka-clients-4.4.0.jar": "1ab07317eb6633241392449d329dbdc5d9251e6ffc4926860f42dd966e88bdf9",
}
STORED_JARS = {
    "kafka-metadata-4.3.1.jar": "4d73a96c6474a4ebdd67a1cee14da1a94cfd6bb9e6e252685ba5667d8ab7f898",
    "kafka-group-coordinator-4.3.1.jar": "4ab56d002e1624185c874199e9e0ffb243dbeb9f68b4d0cadf48ce2f617a1126",
    "kafka-transaction-coordinator-4.3.1.jar": (
        "c64aaa2a88d8fd382c4800204872917686e542043c7916c9e8797d939d8eb313"
    ),
}


class BadJar(Exception):
    pass


def fetch(directory: Path) -> None:
    """Put all jars into `directory`, from Maven's local repository or from Maven Central."""
    subprocess.run(
        [
            *("mvn", "--quiet", "--batch-mode", "--file", str(POM)),
            *("dependency:copy-dependencies", f"-DoutputDirectory={directory}"),
        ],
        check=True,
    )
    for name, expected in {**WIRE_JARS, **STORED_JARS}.items():
        path = directory / name
        if not path.is_file():
            raise BadJar(f"{name} was not fetched: do pom.xml and jars.py name the same version?")
        actual = hashlib.sha256(path.read_bytes()).hexdigest()
        if actual != expected:
            raise BadJar(f"{name} has the checksum {actual}, not {expected}")
