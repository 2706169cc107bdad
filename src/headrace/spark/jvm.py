"""What the pipeline needs of a session's own Java process: that there is one, and that it has the jars."""

from __future__ import annotations

from typing import Any, Final

from py4j.java_gateway import JavaPackage  # type: ignore[import-untyped]  # comes with PySpark, without types
from pyspark.sql import SparkSession

from headrace.core.errors import HeadraceError
from headrace.spark.jars import JarsMissing, needed

KAFKA_ADMIN: Final = "org.apache.kafka.clients.admin.AdminClient"


class NotClassic(HeadraceError):
    """The session is one of Spark Connect; says what to use instead."""


def require_classic(spark: SparkSession, what: str) -> Any:
    """The gateway to Java. A session of Spark Connect has none."""
    if not hasattr(spark, "_jvm"):
        raise NotClassic(
            f"this session is one of Spark Connect, and {what} works in Spark's own process: use a classic "
            "session, as headrace.spark.session() makes it"
        )
    return spark._jvm


def exit_code(spark: SparkSession) -> int | None:
    """Of the Java process that this session has started; None while it runs, and where it is another's."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    return None if process is None else process.poll()


def java_class(spark: SparkSession, name: str, what: str) -> Any:
    """Raises JarsMissing: Py4J would say that a package cannot be called, and not why."""
    found = require_classic(spark, what)
    for part in name.split("."):
        found = getattr(found, part)
    if isinstance(found, JavaPackage):
        jars = ", ".join(jar.file_name for jar in needed())
        raise JarsMissing(
            f"this Spark session has no {name.rpartition('.')[2]}: it was made without the jars that {what} "
            f"needs ({jars}). Make it with headrace.spark.session(), or give yours the settings of "
            "headrace.spark.settings() before it starts. `headrace spark jars` brings the files"
        )
    return found


def require_kafka(spark: SparkSession, what: str) -> Any:
    """The class of Kafka's own admin client."""
    return java_class(spark, KAFKA_ADMIN, what)
