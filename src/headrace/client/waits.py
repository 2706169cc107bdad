"""What a client waits for, so that whoever talks to people can say it instead of being silent.

A cluster notes here each request that is on its way and each thing that fails and is tried again. Nothing is
decided by it.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from headrace.client.errors import ClientFailure
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.api_names import api_name

_MAY_TAKE_LONG: Final = frozenset((ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP))
"""Answered when the other members have come, which may rightly take minutes."""


class Question(NamedTuple):
    peer: str
    what: str
    since: float


class _Failure(NamedTuple):
    error: ClientFailure
    since: float


class Waits:
    def __init__(self) -> None:
        self._questions: dict[int, Question] = {}
        self._failing: dict[object, _Failure] = {}
        self._last = 0

    def asked(self, peer: str, api: int) -> int:
        """Returns what `answered` wants."""
        if api in _MAY_TAKE_LONG:
            return 0
        self._last += 1
        self._questions[self._last] = Question(peer, api_name(api), time.monotonic())
        return self._last

    def answered(self, number: int) -> None:
        """Also when there will be no answer any more."""
        self._questions.pop(number, None)

    def failed(self, who: object, error: ClientFailure) -> None:
        """`who` tries again."""
        before = self._failing.get(who)
        self._failing[who] = _Failure(error, time.monotonic() if before is None else before.since)

    def done(self, who: object) -> None:
        """It has succeeded, or given up."""
        self._failing.pop(who, None)

    def trouble(self, patience_seconds: float) -> str | None:
        """What has been wrong for longer than this; None if nothing has."""
        now = time.monotonic()
        for failure in self._failing.values():
            if now - failure.since >= patience_seconds:
                return str(failure.error)
        for question in self._questions.values():
            if now - question.since >= patience_seconds:
                seconds = now - question.since
                return f"the broker at {question.peer} has not answered {question.what} for {seconds:.0f} s"
        return None
