"""A Spark that does a little of everything, and then writes the archive of `class_archive`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from headrace.spark.sessions import session

_SECONDS: Final = 600


def run(archive: str) -> None:
    """The process of this call must end with it: Java writes the archive when its JVM ends."""
    directory = Path(archive).parent
    extra = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={archive}",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = session("classes", master="local[2]", warehouse=directory / "warehouse", extra=extra)
    _write_and_read(spark, str(directory / "rows"))
    _stream(spark, str(directory / "rows"), directory)
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    spark.stop()
    # A JVM ends when nobody speaks to it any more.
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_SECONDS)


def _write_and_read(spark: SparkSession, rows: str) -> None:
    """Files, a shuffle, a join, rows to and from Python, a table of Delta."""
    spark.range(20).selectExpr("id", "cast(id as string) as text", "id % 3 as third").write.parquet(rows)
    read = spark.read.parquet(rows)
    read.groupBy("third").agg({"id": "max", "text": "min"}).orderBy("third").collect()
    spark.createDataFrame([(1, "a")], "id long, text string").join(read, "id").rdd.map(tuple).collect()
    read.write.format("delta").save(f"{rows}.delta")
    spark.read.format("delta").load(f"{rows}.delta").where("id > 3").count()


def _stream(spark: SparkSession, rows: str, directory: Path) -> None:
    def append(batch: DataFrame, _: int) -> None:
        batch.write.mode("append").parquet(str(directory / "target"))

    read = spark.readStream.schema(spark.read.parquet(rows).schema).parquet(rows).where("id > 3")
    writer = read.writeStream.foreachBatch(append).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(directory / "checkpoint")).start()
    if not query.awaitTermination(_SECONDS):
        raise TimeoutError(f"a stream of 20 rows did not end within {_SECONDS} s")
