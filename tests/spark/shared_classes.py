"""An archive of the classes that every JVM of Spark loads. With it a driver costs a third less to start.

    python -m tests.spark.shared_classes

Java takes an archive only for the class path and the Java that it was made with, and otherwise does without;
so nothing that is tested depends on it. Whoever needs one first makes it, in .cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from tests.apache_kafka import CACHE

#: For JVMs of seconds or minutes on few cores: the first compiler and one thread for the garbage are enough.
#: With one compiler Java has room for 48 MB of code. Spark fills that in minutes; the rest is interpreted.
_ON_FEW_CORES: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
_SECONDS: Final = 300
_CHECKOUT: Final = Path(__file__).parents[2]


def _archive() -> Path:
    """Another one for another Java or another Spark."""
    java = Path(shutil.which("java") or "java").resolve()
    made_of = (
        f"{java} {java.stat().st_mtime if java.exists() else 0} {pyspark.__file__} {pyspark.__version__}"
    )
    return CACHE / f"spark-classes-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}.jsa"


def short_lived() -> str:
    """Options for a JVM of Spark that starts now."""
    archive = _archive()
    # A mismatch would be told on the standard output, where nobody looks for it.
    return (
        f"{_ON_FEW_CORES} -XX:SharedArchiveFile={archive} -Xlog:disable"
        if archive.exists()
        else _ON_FEW_CORES
    )


def make() -> None:
    """Unless it is there, or somebody else is at it: who has to wait starts sooner without."""
    archive = _archive()
    if archive.exists():
        return
    with archive.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if archive.exists():
            return
        with tempfile.TemporaryDirectory(dir=CACHE) as name:
            fresh = Path(name) / archive.name
            environment = {**os.environ, "PYTHONPATH": str(_CHECKOUT), "SPARK_LOCAL_IP": "127.0.0.1"}
            command = [sys.executable, "-m", "tests.spark.shared_classes", str(fresh)]
            try:
                done = subprocess.run(
                    command, cwd=name, env=environment, capture_output=True, timeout=_SECONDS, check=False
                )
            except subprocess.TimeoutExpired:
                return  # on a machine as busy as that nobody should wait for it
            if done.returncode != 0 or not fresh.exists():
                told = done.stderr.decode()[-4000:]
                print(f"Spark starts without an archive of its classes: {told}", file=sys.stderr)
                return
            fresh.rename(archive)


def _load_classes(spark: SparkSession, directory: Path) -> None:
    """By a little of what the tests do: files, a shuffle, a stream, rows to and from Python."""
    source = str(directory / "source")
    spark.range(20).selectExpr("id", "cast(id as string) as text", "id % 3 as third").write.parquet(source)
    read = spark.read.parquet(source)
    read.groupBy("third").agg({"id": "max", "text": "min"}).orderBy("third").collect()
    spark.createDataFrame([(1, "a")], "id long, text string").join(read, "id").rdd.map(tuple).collect()
    query = (
        spark.readStream.schema(read.schema)
        .parquet(source)
        .where("id > 3")
        .writeStream.foreachBatch(
            lambda rows, _: rows.write.mode("append").parquet(str(directory / "target"))
        )
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(_SECONDS)


def main(archive: Path) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(archive.parent / "warehouse"))
        .config("spark.driver.extraJavaOptions", f"{_ON_FEW_CORES} -XX:ArchiveClassesAtExit={archive}")
        .getOrCreate()
    )
    _load_classes(spark, archive.parent)
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    spark.stop()
    # The archive is written when the JVM ends, which it does when nobody speaks to it any more.
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_SECONDS)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        make()
