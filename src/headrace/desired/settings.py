"""Values of settings, as Kafka writes them: always texts."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Final

from headrace.client.throttles import REPLICAS
from headrace.config.topic_properties import TOPIC_PROPERTIES

_OURS: Final = [
    TOPIC_PROPERTIES[name].name for name in ("headrace.balance.moved.replicas", "headrace.tier.fork")
]
OF_MOVES: Final = frozenset((*REPLICAS, *_OURS))
"""Of topics whose replicas move with a throttle: they belong to the move, not to a file. What a topic is a
fork of belongs to the topic that was made: no file makes a fork."""
_TRUTHS: Final = {
    "true": "true",
    "True": "true",
    "TRUE": "true",
    "false": "false",
    "False": "false",
    "FALSE": "false",
}
_GROUPED: Final = re.compile(r"[-+]?[0-9]+(?:_[0-9]+)+", re.ASCII)


def written(text: str, *, is_plain: bool) -> str:
    """Of a value in a file. Without quotes True is true and 1_000 is 1000; `no` and `on` stay words."""
    if not is_plain:
        return text
    if _GROUPED.fullmatch(text):
        return text.replace("_", "")
    return _TRUTHS.get(text, text)


def are_equal(one: str, other: str) -> bool:
    """0.5 is 0.50, TRUE is true, and a list may have spaces after its commas."""
    return one == other or _plainly(one) == _plainly(other)


def _plainly(text: str) -> tuple[str, ...] | Decimal:
    try:
        number = Decimal(text)
        if number.is_finite():
            return number
    except InvalidOperation:
        pass
    if text.lower() in ("true", "false"):
        return (text.lower(),)
    return tuple(part.strip() for part in text.split(","))
