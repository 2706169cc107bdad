"""The tables that a `headrace lake` fills, as a tier of an audit: dead letters too, and how far both are.

A batch goes into two tables, one commit after the other. Whoever looks between the two sees records that are
in neither table, and larger offsets beside them. So how far a lake is cannot be told from its rows alone. The
checkpoint of its query tells: a batch stands there when both commits are done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import SparkSession

from headrace.spark.audit.config import AuditRefused, LakeTable
from headrace.spark.audit.picture import Partition
from headrace.spark.decoding.formats import Format
from headrace.spark.lake.checkpoint import Checkpoint
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.files import files_for
from headrace.spark.lake.plan import route
from headrace.spark.lake.table_schema import quoted


def tables_of(lake: LakeConfig, topics: Iterable[str], tier: str = "lake") -> tuple[LakeTable, ...]:
    """What lake.toml says of these topics. Tables that do not exist yet are taken for empty."""
    found = []
    for topic in topics:
        way = route(lake, topic)
        if way is None:
            raise AuditRefused(f"the lake does not load {topic}; add it to lake.toml, or leave it out here")
        if way.decoding.format is not Format.BYTES and not way.keep_value:
            # A column called `value` would be a field of the decoded value then.
            raise AuditRefused(
                f"the audit needs the bytes of {topic}: set keep_value = true for it in lake.toml"
            )
        for table in (way.table, way.dead_letters):
            found.append(LakeTable(lake.format, _location(lake, table), tier, way.checkpoint))
    return tuple(found)


def _location(lake: LakeConfig, table: str) -> str:
    if lake.format != "iceberg":
        return f"{lake.location}/{table}"
    return ".".join(quoted(part) for part in (lake.catalog, *lake.namespace.split("."), table))


def positions_told(spark: SparkSession, tables: Sequence[LakeTable]) -> dict[Partition, int]:
    """Up to where the tables have every record, by their checkpoints. To be asked before they are read."""
    found: dict[Partition, int] = {}
    for checkpoint in {table.checkpoint for table in tables if table.checkpoint is not None}:
        found |= Checkpoint(files_for(checkpoint, spark), checkpoint).loaded()
    return found
