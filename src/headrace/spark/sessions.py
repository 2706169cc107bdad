"""A Spark session that is ready for the pipeline: jars, table formats, and this Python for the workers.

    from headrace.spark import session
    spark = session()

Everything in `headrace.spark` takes a session, this one or one that a cluster manager or a notebook made.
What such a session must be given is `settings()`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from headrace.core.errors import HeadraceError
from headrace.spark import class_archive, concealing, jars
from headrace.spark.jvm import require_kafka
from headrace.spark.segments.datasource import register as register_segments
from headrace.spark.sink.datasource import register as register_sink

#: The name of the catalog in which Iceberg tables are found; its warehouse is a directory.
ICEBERG_CATALOG: Final = "iceberg"
_EXTENSIONS: Final = (
    "io.delta.sql.DeltaSparkSessionExtension",
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
)
#: A few bytes that are not Avro can claim to be an array of two thousand million items. Avro's reader would
#: make room for them first, which costs the executor its life; within these limits it costs the record.
AVRO_LIMITS: Final = {
    "org.apache.avro.limits.bytes.maxLength": 64 << 20,
    "org.apache.avro.limits.string.maxLength": 64 << 20,
    "org.apache.avro.limits.collectionItems.maxLength": 4 << 20,
}
_LOGGING: Final = Path(__file__).with_name("log4j2.properties").absolute()
#: Spark walks plans, and long errors too, by recursion. For those of a batch that is stopped in the middle
#: Java's own 1 MB may not do: the query's thread is gone then, without a word. Only what is used is taken.
_STACK: Final = "-Xss4m"


class SessionExists(HeadraceError):
    """A process has one Spark, and the one that runs is not what was asked for; says what differs."""


def settings(
    *, jar_directory: Path | str | None = None, packages: bool = False, warehouse: Path | str | None = None
) -> dict[str, str]:
    """With `packages`, Spark resolves the jars itself, which needs a whole Maven repository."""
    found = {
        "spark.sql.extensions": ",".join(_EXTENSIONS),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        f"spark.sql.catalog.{ICEBERG_CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{ICEBERG_CATALOG}.type": "hadoop",
        # Topics are read by offset, so a record's time is what it says: no machine's zone may move it.
        "spark.sql.session.timeZone": "UTC",
        # Delta reads its own log in so many tasks, 50 by default, for each commit of each table.
        "spark.databricks.delta.snapshotPartitions": "4",
        concealing.SETTING: concealing.WHOLE,
    }
    limits = " ".join(f"-D{name}={limit}" for name, limit in AVRO_LIMITS.items())
    for process in ("driver", "executor"):
        found[f"spark.{process}.extraJavaOptions"] = limits
    found["spark.driver.extraJavaOptions"] += f" {_STACK}"
    if packages:
        found["spark.jars.packages"] = ",".join(jar.coordinates for jar in jars.needed())
    else:
        found["spark.jars"] = ",".join(str(path) for path in jars.find(jar_directory))
    where = Path(warehouse or "spark-warehouse").absolute()
    found["spark.sql.warehouse.dir"] = str(where)
    found[f"spark.sql.catalog.{ICEBERG_CATALOG}.warehouse"] = str(where / "iceberg")
    return found


def quiet(given: str, environment: Mapping[str, str] = os.environ) -> str:
    """An option with which a driver prints what is news; empty where the user has settled what it logs.

    `given` are the user's own options for Java.
    """
    homes = [environment.get("SPARK_CONF_DIR"), f"{environment.get('SPARK_HOME', '')}/conf"]
    own_file = any(home and (Path(home) / "log4j2.properties").exists() for home in homes)
    if own_file or "log4j" in given + environment.get("SPARK_SUBMIT_OPTS", ""):
        return ""
    return f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"


def session(
    name: str = "headrace",
    *,
    master: str | None = None,
    jar_directory: Path | str | None = None,
    packages: bool = False,
    warehouse: Path | str | None = None,
    extra: Mapping[str, str] | None = None,
) -> SparkSession:
    """`master` is `local[*]` unless it is given, or spark-submit has chosen; `extra` has the last word.

    The session that runs already is returned if it has what was asked for, so a notebook's first cell may
    run again. Otherwise SessionExists says what it lacks.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return _suited(running, master, warehouse, extra or {})
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    elif "SPARK_MASTER" not in os.environ and "PYSPARK_SUBMIT_ARGS" not in os.environ:
        builder = builder.master("local[*]")
    chosen = settings(jar_directory=jar_directory, packages=packages, warehouse=warehouse)
    given = (extra or {}).get("spark.driver.extraJavaOptions", "")
    chosen["spark.driver.extraJavaOptions"] += f" {quiet(given)} {class_archive.options(jar_directory)}"
    for key, value in {**chosen, **(extra or {})}.items():
        if key.endswith(".extraJavaOptions") and value != chosen.get(key, value):
            # Added to ours, which must not get lost; of two for the same property Java takes the later.
            value = f"{chosen[key]} {value}"
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    _register(made)
    return made


def _register(spark: SparkSession) -> None:
    register_sink(spark)
    register_segments(spark)


def _has(running: SparkSession, key: str, value: str) -> bool:
    found = running.conf.get(key, None) or ""
    # Options for Java are added to ours; a path becomes a URL.
    return value in found if key.endswith(".extraJavaOptions") else found.removeprefix("file:") == value


def _suited(
    running: SparkSession, master: str | None, warehouse: Path | str | None, extra: Mapping[str, str]
) -> SparkSession:
    require_kafka(running, "the pipeline")
    wanted = dict(extra)
    extensions = running.conf.get("spark.sql.extensions", "") or ""
    if not all(each in extensions for each in _EXTENSIONS):
        wanted["spark.sql.extensions"] = ",".join(_EXTENSIONS)
    if master is not None:
        wanted["spark.master"] = master
    if warehouse is not None:
        wanted["spark.sql.warehouse.dir"] = str(Path(warehouse).absolute())
    differing = [
        f"{key} is {running.conf.get(key, None)!r}, not {value!r}"
        for key, value in wanted.items()
        if not _has(running, key, value)
    ]
    if differing:
        raise SessionExists(
            f"this process has a Spark session already: {'; '.join(differing)}. Use it as it is "
            "(headrace.spark.session() without arguments), or stop it first: spark.stop()"
        )
    _register(running)
    return running
