"""Where the jars of a ZooKeeper server are: named, in a cache, or inside an installed PySpark."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headrace.core.errors import ConfigError
from headrace.jars.jar_set import JarSet

CLASSPATH_VARIABLE = "HEADRACE_ZOOKEEPER_CLASSPATH"
JARS: Final = JarSet(
    Path(__file__).with_name("zookeeper.pom.xml"),
    variable="HEADRACE_ZOOKEEPER_JARS",
    folder="zookeeper-jars",
    command="headrace zookeeper jars",
)
CACHE = Path(".cache/zookeeper")
"""Of a checkout, for whoever works there."""
WHAT_TO_DO = (
    f"run `{JARS.command}`, which takes 7 MB, install pyspark, which has them, or give"
    " --zookeeper HOST:PORT of a running ZooKeeper"
)

_OF_PYSPARK = (
    "zookeeper-",
    "slf4j-api-",
    "log4j-api-",
    "log4j-core-",
    "log4j-slf4j2-impl-",
    "metrics-core-",
    "snappy-java-",
    "netty-",
    "commons-cli-",
    "commons-io-",
    "audience-annotations-",
)
"""Beginnings of the names that a server needs, among the hundreds of jars that Spark brings."""

_FOR_TLS = "netty-transport-classes-epoll-*.jar"


class ZooKeeperMissing(ConfigError):
    """No server can be started here; the text says what brings one."""


def find_classpath(
    cache: Path | None = None, environ: Mapping[str, str] | None = None, *, for_tls: bool = False
) -> str:
    """The class path of a server.

    `cache` is a directory of jars: .cache/zookeeper here, if it is not given. The variable
    HEADRACE_ZOOKEEPER_CLASSPATH goes before it, what `headrace zookeeper jars` has brought and PySpark come
    after it. A server with TLS needs classes of Netty that a cache may lack.
    """
    cache = CACHE if cache is None else cache
    named = (os.environ if environ is None else environ).get(CLASSPATH_VARIABLE, "").strip()
    if named:
        return named
    if any(cache.glob("zookeeper-[0-9]*.jar")) and (not for_tls or any(cache.glob(_FOR_TLS))):
        return str(cache.resolve() / "*")
    if not JARS.missing(JARS.default_directory()):
        return str(JARS.default_directory().absolute() / "*")
    jars = _jars_of_pyspark()
    if jars:
        return os.pathsep.join(str(jar) for jar in jars)
    raise ZooKeeperMissing(f"there are no jars of a ZooKeeper server here: {WHAT_TO_DO}")


def find_java(environ: Mapping[str, str] | None = None) -> str:
    environ = os.environ if environ is None else environ
    home = environ.get("JAVA_HOME", "")
    java = shutil.which("java", path=os.path.join(home, "bin")) if home else None
    java = java or shutil.which("java", path=environ.get("PATH"))
    if java is None:
        raise ZooKeeperMissing(
            "a ZooKeeper server needs java, which is neither in JAVA_HOME nor in PATH: install a Java runtime"
            " (11 or later), or give --zookeeper HOST:PORT of a running ZooKeeper"
        )
    return java


def _jars_of_pyspark() -> list[Path]:
    # Finds the package without importing it: that would take a second and hundreds of megabytes.
    spec = importlib.util.find_spec("pyspark")
    if spec is None:
        return []
    for location in spec.submodule_search_locations or ():
        jars = sorted(
            path for path in Path(location, "jars").glob("*.jar") if path.name.startswith(_OF_PYSPARK)
        )
        if any(path.name.startswith("zookeeper-") for path in jars):
            return jars
    return []
