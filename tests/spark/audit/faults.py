"""What can happen to one record: in a list of records, and in a table."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headrace.audit.verdict import Kind
from tests.spark.audit.pipeline import Sent


def tampered(records: Sequence[Sent], at: int, kind: Kind) -> list[Sent]:
    victim = records[at]
    middle = {
        Kind.LOST: [],
        Kind.DOUBLED: [victim, victim],
        Kind.ALTERED: [victim._replace(value=(victim.value or b"")[:-1] + b"?")],
    }[kind]
    return [*records[:at], *middle, *records[at + 1 :]]


def tampered_rows(rows: DataFrame, victim: Sent, kind: Kind) -> DataFrame:
    is_victim = F.coalesce(F.col("value") == F.lit(victim.value), F.lit(False))
    if kind is Kind.LOST:
        return rows.where(~is_victim)
    if kind is Kind.DOUBLED:
        return rows.union(rows.where(is_victim))
    return rows.withColumn("value", F.when(is_victim, F.lit(b"other")).otherwise(F.col("value")))
