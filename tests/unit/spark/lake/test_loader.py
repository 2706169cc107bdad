"""Topics that share a table."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StringType, StructType

from headrace.spark.lake.loader import prepare
from headrace.spark.lake.shaping import Shaped
from headrace.spark.lake.table_schema import Following
from headrace.spark.lake.tables.table import Table

_NO_FRAME = cast(DataFrame, None)


class Shared:
    """A table whose schema is read by both topics before either changes it, if it is let."""

    name = "both"
    scale_may_grow = False

    def __init__(self) -> None:
        self.current = StructType().add("offset", LongType())
        self._both_have_read = threading.Barrier(2)

    def schema(self) -> StructType:
        read = self.current
        try:
            self._both_have_read.wait(0.2)
        except threading.BrokenBarrierError:
            pass
        return read

    def change(self, following: Following) -> None:
        self.current = following.schema


def test_topics_that_share_a_table_keep_each_others_columns() -> None:
    table = Shared()
    shaped = [
        Shaped(_NO_FRAME, StructType().add("offset", LongType()), StructType().add(name, StringType()))
        for name in ("a", "b")
    ]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda each: prepare(cast(Table, table), each), shaped))
    assert sorted(table.current.names) == ["a", "b", "offset"]
