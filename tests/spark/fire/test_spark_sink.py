"""Spark's own sink under the same fire: nothing is lost, and the duplicates that it is known for are seen.

As short as can be: two strikes into writes, and the death of the driver that ends every round.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.spark.fire.field import Field
from tests.spark.fire.jobs import SPARK_SINK
from tests.spark.fire.rounds import Round
from tests.spark.fire.strikes import Moment, Target, planned

_SEED, _STRIKES = 29, 2


def test_the_fire_shows_duplicates_of_a_sink_that_is_at_least_once(
    spark: SparkSession, field: Field, tmp_path: Path
) -> None:
    # At once: what was seen to be written is of a batch that is not over, and is written again.
    plan = [strike._replace(delay=0.0) for strike in planned(_SEED, _STRIKES)]
    assert [strike.target for strike in plan] == [Target.EXECUTOR, Target.DRIVER]
    assert {strike.moment for strike in plan} == {Moment.IN_WRITE}
    outcome = Round(field, SPARK_SINK, _SEED, tmp_path / "round", say=print).run(spark, plan)
    print(outcome)
    assert outcome.in_flight > 0
    assert outcome.verdict.missing == 0
    assert outcome.verdict.alien == 0
    assert outcome.verdict.doubled > 0
