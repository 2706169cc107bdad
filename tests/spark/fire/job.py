"""A job that can be put under fire: the program of its driver, and who judges what it has written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from tests.spark.fire.field import Field
from tests.spark.fire.judges import Verdict
from tests.spark.fire.orders import Orders

Judge = Callable[[SparkSession, Orders], Verdict]
"""Runs when the job has ended; the session is not the job's."""
Feed = Callable[[int], None]
"""So many more records into the source."""


@dataclass(frozen=True)
class Job:
    name: str
    program: str
    """A module that is started with `Orders` as its argument, and ends with 0 when it was told to finish."""
    judge: Judge
    options: dict[str, str] = field(default_factory=dict)
    prepare: Callable[[Orders, Feed, Field], None] | None = None
    """Before its first start, when the source has records."""
    settings: dict[str, str] = field(default_factory=dict)
    """Of its session, beside those of the cluster."""
    source_settings: dict[str, str] = field(default_factory=dict)
    """Of the topic that it reads."""
    producer_batch_bytes: int = 1_000_000
    is_tiered: bool = False
    """Its field has a store, and the topic that it reads has history there."""
    writes_topic: bool = False
    """Its target is a topic, made before the round; it can be seen there how far the job has written."""
    exactly_once: bool = True
    batch_records: int = 20_000
    changing: tuple[dict[str, str], ...] = ()
    """Settings that change from one start of the driver to the next."""

    def settings_of_start(self, number: int) -> dict[str, str]:
        turn = self.changing[number % len(self.changing)] if self.changing else {}
        return {**self.settings, **turn}
