"""Answers that depend on nothing but the metadata, kept as encoded bytes until the metadata changes.

Clients ask for the same topics again and again; encoding a thousand partitions anew costs milliseconds.
"""

from __future__ import annotations

from collections import OrderedDict
from struct import Struct
from typing import Final, NamedTuple

from headrace.core.memory import MemoryShare, unlimited
from headrace.core.ports import FileRange
from headrace.network.response import DelayedResponse, Parts, bytes_in_memory

MAX_ENTRIES: Final = 256
MAX_ANSWER_BYTES: Final = 1024 * 1024
MAX_QUESTION_BYTES: Final = 4096
ENTRY_BYTES: Final = 400
"""Objects, and a place in the table."""
_CORRELATION: Final = Struct(">i")


class Question(NamedTuple):
    """What makes two requests the same: also the listener, whose addresses the answer names, and what the
    client may see."""

    version: int
    listener: str
    rights_class: int
    body: bytes


class AnswerCache:
    __slots__ = ("_answers", "_clears", "_metadata_end", "_share")

    def __init__(self, share: MemoryShare | None = None) -> None:
        self._share = unlimited("cached answers") if share is None else share
        self._answers: OrderedDict[Question, bytes] = OrderedDict()
        self._metadata_end = -1
        self._clears = 0

    def get(self, question: Question, metadata_end: int, correlation_id: int) -> bytes | None:
        if metadata_end != self._metadata_end:
            self.clear()
            self._metadata_end = metadata_end
            return None
        frame = self._answers.get(question)
        if frame is None:
            return None
        return b"".join((frame[:4], _CORRELATION.pack(correlation_id), memoryview(frame)[8:]))

    def clear(self) -> None:
        self._clears += 1
        self._answers.clear()
        self._share.used_bytes = 0

    def put(self, question: Question, metadata_end: int, frame: bytes) -> None:
        if (
            metadata_end != self._metadata_end
            or len(frame) > MAX_ANSWER_BYTES
            or len(question.body) > MAX_QUESTION_BYTES
        ):
            return
        share = self._share
        known = self._answers.pop(question, None)
        if known is not None:
            share.give(_cost(question, known))
        self._answers[question] = frame
        share.take(_cost(question, frame))
        while self._answers and (len(self._answers) > MAX_ENTRIES or share.is_overdrawn):
            share.give(_cost(*self._answers.popitem(last=False)))

    def kept_later(self, question: Question, metadata_end: int, answer: DelayedResponse) -> DelayedResponse:
        """The same answer; its bytes are kept when they come, unless they may be outdated by then."""
        clears = self._clears
        passed_on = DelayedResponse(exclusive=answer.exclusive)
        passed_on.on_abandon = answer.abandon

        def on_done(_: object) -> None:
            parts = answer.parts
            if clears == self._clears and bytes_in_memory(parts) <= MAX_ANSWER_BYTES:
                self.put(question, metadata_end, _joined(parts))
            passed_on.complete(parts)

        answer.when_done(on_done)
        return passed_on


def _cost(question: Question, frame: bytes) -> int:
    return ENTRY_BYTES + len(question.body) + len(frame)


def _joined(parts: Parts) -> bytes:
    return b"".join(part for part in parts if not isinstance(part, FileRange))
