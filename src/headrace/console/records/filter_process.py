"""A process that does nothing but ask a filter about records: what it may cost is the kernel's to say.

A filter that goes over a list and asks for each of its items whether it is in the list takes minutes with one
record, holds the interpreter's lock meanwhile, and nobody can stop it. So it has a process of its own, which
ends where it takes too much time of a processor or too much memory.
"""

from __future__ import annotations

import resource
import select
import signal
import struct
import sys
from functools import lru_cache
from typing import BinaryIO, Final

from headrace.console.records import filter_questions
from headrace.console.records.filters import Filter, FilterRefused, TooLarge
from headrace.protocol.records import Record

PROCESSOR_SECONDS: Final = 1.0
"""Of one question. Honest filters take 23 us for a record."""
MEMORY_BYTES: Final = 512 * 1024 * 1024
IDLE_SECONDS: Final = 60.0
NOT_TAKEN: Final = 0
TAKEN: Final = 1
TOO_LARGE: Final = 2
LENGTH: Final = struct.Struct(">I")


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Until nobody asks any more. `questions` has no buffer: what is in one would not wake anybody."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the console and to us
    while select.select([questions], [], [], IDLE_SECONDS)[0]:
        head = _read(questions, LENGTH.size)
        data = _read(questions, LENGTH.unpack(head)[0]) if head else b""
        if not data:
            return
        # Nobody handles SIGPROF: the kernel ends this process, whatever it is doing.
        signal.setitimer(signal.ITIMER_PROF, PROCESSOR_SECONDS)
        verdicts = _verdicts(data)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(verdicts)
        answers.flush()


def _read(questions: BinaryIO, count: int) -> bytes:
    """Nothing where they end before."""
    parts = []
    while count:
        part = questions.read(count)
        if not part:
            return b""
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _verdicts(data: bytes) -> bytes:
    """A byte for each record."""
    asked = filter_questions.read(data)
    condition = _compiled(asked.filter)
    return bytes(_verdict(condition, asked.topic, asked.partition, each) for each in asked.records)


@lru_cache(maxsize=4)
def _compiled(text: str) -> Filter | None:
    """None for one that is refused: whoever asks has found that out before."""
    try:
        return Filter(text)
    except FilterRefused:
        return None


def _verdict(condition: Filter | None, topic: str, partition: int, record: Record) -> int:
    if condition is None:
        return NOT_TAKEN
    try:
        return TAKEN if condition.takes(topic, partition, record) else NOT_TAKEN
    except TooLarge:
        return TOO_LARGE


if __name__ == "__main__":
    with open(0, "rb", buffering=0) as asked:
        serve(asked, sys.stdout.buffer)
