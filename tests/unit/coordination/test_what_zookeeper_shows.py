"""ZooKeeper shows the names of nodes to everybody: they tell nothing. And the server is not an old one."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from headrace.coordination.ensemble.paths import Paths
from headrace.testing.zookeeper_jars import find_classpath

MENDED = ((3, 8, 4), (3, 9, 2))
"""The first of each line without CVE-2024-23944. Both are later than the one without CVE-2023-44981."""
_JAR = re.compile(r"zookeeper-(\d+)\.(\d+)\.(\d+)\.jar")


def is_mended(version: tuple[int, ...]) -> bool:
    return any(version[:2] == first[:2] and version >= first for first in MENDED) or version > MENDED[-1]


def test_names_of_nodes_are_fixed_or_numbers() -> None:
    """Whatever a cluster holds, users and topics among it, is in the content of nodes, which ACLs protect."""
    paths, made = Paths("/c"), []
    for name, method in inspect.getmembers(paths, inspect.ismethod):
        parameters = list(inspect.signature(method).parameters.values())
        if name.startswith("_"):
            continue
        assert all(each.annotation in ("int", "BrokerId") for each in parameters), name
        found = method(*(7 for _ in parameters))
        made += [found] if isinstance(found, str) else list(found)
    made += [value for value in vars(paths).values() if isinstance(value, str)]
    assert len(made) > 15
    assert not [path for path in made if not re.fullmatch(r"(/[a-z_]+)*(/\d+)?", path)]


def test_versions_are_told_apart() -> None:
    assert not any(is_mended(old) for old in ((3, 4, 14), (3, 7, 2), (3, 8, 3), (3, 9, 0), (3, 9, 1)))
    assert all(is_mended(new) for new in ((3, 8, 4), (3, 9, 2), (3, 9, 4), (3, 10, 0), (4, 0, 0)))


def test_the_server_that_is_started_here_is_mended() -> None:
    """`headrace up --brokers 3` and the tests take the one that PySpark brings, if no other is named."""
    jars = [
        jar.name
        for part in find_classpath(Path("nowhere"), {}).split(":")
        for jar in (Path(part).parent.glob("*.jar") if part.endswith("*") else [Path(part)])
    ]
    versions = [tuple(map(int, found.groups())) for found in map(_JAR.fullmatch, jars) if found]
    assert len(versions) == 1
    assert is_mended(versions[0])
