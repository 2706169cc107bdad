"""The jars that a session needs beside PySpark's own.

They are named once, in pom.xml beside this file. Maven brings them into a directory; where Spark itself may
reach a whole Maven repository, their coordinates do as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from headrace.jars.jar_set import Jar, JarSet, JarsMissing

__all__ = ["DIRECTORY_VARIABLE", "JARS", "Jar", "JarsMissing", "default_directory", "fetch", "find"]

DIRECTORY_VARIABLE: Final = "HEADRACE_SPARK_JARS"
JARS: Final = JarSet(
    Path(__file__).with_name("pom.xml"),
    variable=DIRECTORY_VARIABLE,
    folder="spark-jars",
    command="headrace spark jars",
)
needed = JARS.needed
default_directory = JARS.default_directory
missing = JARS.missing
find = JARS.find
fetch = JARS.fetch
