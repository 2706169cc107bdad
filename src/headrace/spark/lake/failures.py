"""What a query died of, in words that say what to do."""

from __future__ import annotations

import re
from typing import Final

from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.files import for_people
from headrace.spark.lake.plan import Route

_LOSS: Final = re.compile(r"data may have been (?:lost|missed)|KAFKA_DATA_LOSS|some data may", re.IGNORECASE)
_GONE: Final = re.compile(r"UnknownTopicOrPartition|does not host this topic")
_MODULE: Final = re.compile(r"^(?:\w+\.)+")
_LENGTH: Final = 600


def is_loss(text: str) -> bool:
    """Whether records that were to be read are gone, or their topic is another one."""
    return _LOSS.search(text) is not None


def explain(text: str, route: Route, config: LakeConfig) -> str:
    if is_loss(text) and config.on_data_loss == "stop":
        return (
            f"records of {route.topic} that were not loaded yet are gone (retention), or the topic was made "
            'anew. To go on with what there is, set on_data_loss = "continue" below [lake]. If the topic was '
            f"made anew, its offsets begin again: remove {for_people(route.state)} and give the topic other "
            "tables. "
            f"Spark said: {short(text)}"
        )
    if route.topic in text and _GONE.search(text) and _raised(text) is None:
        return f"topic {route.topic} cannot be read: was it deleted? Spark said: {short(text)}"
    return short(text)


def short(text: str) -> str:
    """What our own function raised, else what Spark says without its calls, which its log has."""
    said = _raised(text) or " ".join(
        line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")
    )
    return said if len(said) <= _LENGTH else f"{said[:_LENGTH]} ..."


def _raised(text: str) -> str | None:
    """The last line of a traceback of Python, without the name of the error's module."""
    found = None
    lines = iter(text.splitlines())
    for line in lines:
        if line.rstrip().endswith("Traceback (most recent call last):"):  # Py4J's own words may come first
            found = next(
                (each.strip() for each in lines if each.strip() and not each.startswith((" ", "Traceback"))),
                found,
            )
    return None if found is None else _MODULE.sub("", found)
