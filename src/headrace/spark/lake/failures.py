"""What a query died of, in words that say what to do."""

from __future__ import annotations

import re
from typing import Final

from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.plan import Route

_LOSS: Final = re.compile(r"data may have been (?:lost|missed)|KAFKA_DATA_LOSS|some data may", re.IGNORECASE)
_GONE: Final = re.compile(r"UnknownTopicOrPartition|does not exist|not found", re.IGNORECASE)
_LENGTH: Final = 600


def explain(text: str, route: Route, config: LakeConfig) -> str:
    if _LOSS.search(text) and config.on_data_loss == "stop":
        return (
            f"records of {route.topic} that were not loaded yet are gone (retention), or the topic was made "
            'anew. To go on with what there is, set on_data_loss = "continue" below [lake]. If the topic was '
            f"made anew, its offsets begin again: remove {route.state} and give the topic another table. "
            f"Spark said: {_short(text)}"
        )
    if route.topic in text and _GONE.search(text):
        return f"topic {route.topic} cannot be read: was it deleted? Spark said: {_short(text)}"
    return _short(text)


def _short(text: str) -> str:
    """The first lines; the rest is a stack of calls inside Spark, which its log has."""
    lines = [
        line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")
    ]
    said = " ".join(lines)
    return said if len(said) <= _LENGTH else f"{said[:_LENGTH]} ..."
