"""The lake and the sink under fire, one round each. `python -m tests.spark.fire` has many."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.fire.field import Field
from tests.spark.fire.job import Job
from tests.spark.fire.jobs import JOBS, LAKES, SINK
from tests.spark.fire.rounds import Round
from tests.spark.fire.strikes import planned

_STRIKES = 4
#: Every build has another; a failure prints it.
_SEED = int(os.environ.get("HEADRACE_FIRE_SEED", "0")) or int.from_bytes(os.urandom(3), "big")


@pytest.mark.parametrize("name", [job.name for job in (*LAKES, SINK)])
def test_every_record_arrives_once(name: str, spark: SparkSession, field: Field, tmp_path: Path) -> None:
    job: Job = JOBS[name]
    outcome = Round(field, job, _SEED, tmp_path / "round", say=print).run(spark, planned(_SEED, _STRIKES))
    assert outcome.verdict.equal, outcome
    assert outcome.in_flight > 0, outcome
