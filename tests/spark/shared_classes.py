"""Options for Spark's JVMs in tests, which live for seconds or minutes, on few cores."""

from __future__ import annotations

import sys
from typing import Final

from headrace.spark import class_archive
from tests.apache_kafka import CACHE

_JARS: Final = CACHE / "spark-jars"
#: The first compiler and one thread for the garbage are enough.
#: With one compiler Java has room for 48 MB of code. Spark fills that in minutes; the rest is interpreted.
_ON_FEW_CORES: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"


def make() -> None:
    try:
        class_archive.make(_JARS)
    except class_archive.NoArchive as error:
        print(f"Spark starts without an archive of its classes: {error}", file=sys.stderr)


def short_lived() -> str:
    """Also for those that `session` does not start."""
    return f"{_ON_FEW_CORES} {class_archive.options(_JARS)}"
