"""A key that becomes another under a table: it is told, and the table stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.spark.table.plan import NeedsRebuild
from tests.spark.table.conftest import TablesUnderTest

_KEYED = '[[tables]]\ntopic = "t"\nkey = "json"\nkey_schema = "{schema}"\n'


def test_another_schema_of_the_key_asks_for_a_rebuild(spark: SparkSession, tmp_path: Path) -> None:
    tables = TablesUnderTest(spark, tmp_path, "delta")
    config = tables.config(_KEYED.format(schema="id bigint"))
    tables.load(config, [(0, 0, b'{"id": 1}', b"a")], 1)
    for schema in ("id bigint, shop string", "id string"):
        other = tables.config(_KEYED.format(schema=schema))
        with pytest.raises(NeedsRebuild, match=r"key\.(shop|id).*headrace table rebuild t"):
            tables.load(other, [(0, 1, b'{"id": 1}', b"b")], 2)
    (row,) = tables.rows(config, "t")
    assert (row.key.asDict(), bytes(row.value)) == ({"id": 1}, b"a")
