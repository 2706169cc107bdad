"""Topics that the target refuses: each stands still with its sentence, and is tried again after a while.

Whoever raises a limit, gives a right or empties a topic need not start the mirror anew. A refused batch costs
the other topics a batch, so the pauses grow.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from headrace.protocol.error_codes import ErrorCode

_FIRST_PAUSE: Final = 30.0
_LONGEST_PAUSE: Final = 900.0

OF_ONE_TOPIC: Final = frozenset(
    (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.POLICY_VIOLATION,
    )
)
"""Answers to whoever makes, grows or alters a topic that say nothing of other topics."""


class Refusals:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: dict[str, str] = {}
        self._until: dict[str, float] = {}
        self._pauses: dict[str, float] = {}
        """Kept while a topic is tried again: only what went well removes it."""

    def note(self, topic: str, text: str) -> None:
        pause = min(self._pauses.get(topic, _FIRST_PAUSE / 2) * 2, _LONGEST_PAUSE)
        self._pauses[topic] = pause
        self._until[topic] = self._clock() + pause
        self._said[topic] = text

    def standing(self) -> dict[str, str]:
        """By topic of the source, why it stands still now."""
        return {topic: text for topic, text in self._said.items() if self._clock() < self._until[topic]}

    def went_well(self, topic: str) -> None:
        for each in (self._said, self._until, self._pauses):
            each.pop(topic, None)
