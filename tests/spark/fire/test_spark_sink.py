"""Spark's own sink under the same fire: nothing is lost, and the duplicates that it is known for are seen."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.spark.fire.field import Field
from tests.spark.fire.jobs import SPARK_SINK
from tests.spark.fire.rounds import Round


def test_the_fire_shows_duplicates_of_a_sink_that_is_at_least_once(
    spark: SparkSession, field: Field, tmp_path: Path
) -> None:
    outcome = Round(field, SPARK_SINK, seed=1, directory=tmp_path / "round", say=print).run(spark, strikes=4)
    print(outcome)
    assert outcome.in_flight > 0
    assert outcome.verdict.missing == 0
    assert outcome.verdict.alien == 0
    assert outcome.verdict.doubled > 0
