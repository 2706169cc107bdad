"""The half of Headrace that runs on Spark.

    from headrace.spark import Decoding, Format, read_topic, session, stream_topic

These are what a notebook begins with. They are found when they are asked for: what needs no Spark, as the
commands that look for it, imports none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from headrace.spark.decoding.formats import Decoding, Format
    from headrace.spark.history.whole import stream_whole_topic, whole_topic
    from headrace.spark.kafka_properties import KafkaProperties
    from headrace.spark.pipeline import backfill_lake, read_tables, rebuild_table, run_lake, run_tables
    from headrace.spark.segments.reading import read_segments
    from headrace.spark.sessions import session, settings
    from headrace.spark.source.topic import read_topic, stream_topic
    from headrace.spark.tokens.delegation_token import DelegationToken

__all__ = [
    "Decoding",
    "DelegationToken",
    "Format",
    "KafkaProperties",
    "backfill_lake",
    "read_segments",
    "read_tables",
    "read_topic",
    "rebuild_table",
    "run_lake",
    "run_tables",
    "session",
    "settings",
    "stream_topic",
    "stream_whole_topic",
    "whole_topic",
]

_HOMES: Final = {
    "Decoding": "headrace.spark.decoding.formats",
    "DelegationToken": "headrace.spark.tokens.delegation_token",
    "Format": "headrace.spark.decoding.formats",
    "KafkaProperties": "headrace.spark.kafka_properties",
    "backfill_lake": "headrace.spark.pipeline",
    "read_segments": "headrace.spark.segments.reading",
    "read_tables": "headrace.spark.pipeline",
    "read_topic": "headrace.spark.source.topic",
    "rebuild_table": "headrace.spark.pipeline",
    "run_lake": "headrace.spark.pipeline",
    "run_tables": "headrace.spark.pipeline",
    "session": "headrace.spark.sessions",
    "settings": "headrace.spark.sessions",
    "stream_topic": "headrace.spark.source.topic",
    "stream_whole_topic": "headrace.spark.history.whole",
    "whole_topic": "headrace.spark.history.whole",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
