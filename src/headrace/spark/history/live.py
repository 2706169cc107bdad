"""The brokers' part of a whole topic: it begins where the rest ends, and waits for it where order matters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from headrace.spark.history.listed_stream import require_checkpoint
from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.source.options import Wish
from headrace.spark.source.stream import TopicStream


class LiveStream(TopicStream):
    def __init__(
        self,
        spark: SparkSession,
        wish: Wish,
        connector: Any,
        where: str,
        *,
        starts: Mapping[int, int],
        checkpoint: str,
        may_begin: Callable[[], bool],
    ) -> None:
        require_checkpoint(checkpoint, where)
        super().__init__(spark, wish, connector, where)
        self._starts = {(wish.topics[0], partition): offset for partition, offset in starts.items()}
        self._may_begin = may_begin

    def begins(self) -> Offsets:
        super().begins()
        return self._starts

    def following(self, position: Offsets) -> Offsets:
        return super().following(position) if self._may_begin() else position
