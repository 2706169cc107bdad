"""Topics as Arrow's columns, without a JVM.

    from headrace.arrow import read_topic

    read_topic("orders").read_pandas()

It needs `pip install 'headrace[arrow]'`. What is here is found when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from headrace.arrow.errors import DamagedHistory, HistoryGone
    from headrace.arrow.topic import Topic, open_topic, read_topic

__all__ = ["DamagedHistory", "HistoryGone", "Topic", "open_topic", "read_topic"]

_HOMES: Final = {
    "DamagedHistory": "headrace.arrow.errors",
    "HistoryGone": "headrace.arrow.errors",
    "Topic": "headrace.arrow.topic",
    "open_topic": "headrace.arrow.topic",
    "read_topic": "headrace.arrow.topic",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
