"""Asks filters in processes of their own, and ends one that does not answer."""

from __future__ import annotations

import select
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import IO, Final

from headrace.console.records.filter_process import LENGTH, PROCESSOR_SECONDS
from headrace.console.records.filter_questions import Question, written
from headrace.console.records.filters import MOST_BYTES
from headrace.console.words import counted
from headrace.protocol.records import Record

MOST_RECORDS: Final = 1000
MOST_ASKED_BYTES: Final = 512 * 1024
"""Of the records of one question, if there is more than one."""
WALL_SECONDS: Final = 120.0
"""The kernel counts seconds of a processor; a machine may have none to give."""
MOST_IDLE: Final = 4


class TooDear(Exception):
    """The filter used up what one question may cost. Says with how many records."""


class FilterProcesses:
    """Of one console. May be asked in several threads: each question has a process to itself."""

    def __init__(self) -> None:
        self._idle: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def verdicts(self, text: str, topic: str, partition: int, records: Sequence[Record]) -> bytes:
        """NOT_TAKEN, TAKEN or TOO_LARGE for each. `text` has been compiled before. Raises TooDear."""
        body = written(Question(text, topic, partition, [_cut(each) for each in records]))
        process = self._process()
        found = b""
        try:
            found = _asked(process, body, len(records))
        finally:
            if len(found) == len(records):
                self._give_back(process)
            else:
                _end(process)
        if len(found) < len(records):
            raise TooDear(
                f"it took more than {PROCESSOR_SECONDS:.0f} s of a processor ({WALL_SECONDS:.0f} s by the"
                f" clock), or more memory than it may, for {counted(len(records), 'record')} from offset"
                f" {records[0].offset:,} of partition {partition}"
            )
        return found

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            _end(each)

    def _process(self) -> subprocess.Popen[bytes]:
        with self._lock:
            idle, self._idle = self._idle, []
        living = [each for each in idle if each.poll() is None]
        for each in idle:
            if each not in living:
                _end(each)
        found = living.pop() if living else _started()
        with self._lock:
            self._idle += living
        return found

    def _give_back(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            if len(self._idle) < MOST_IDLE:
                self._idle.append(process)
                return
        _end(process)


def questions(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """In parts of which each is cheap enough to be asked at once."""
    first = length = 0
    for at, record in enumerate(records):
        own = len(record.key or b"") + min(len(record.value or b""), MOST_BYTES)
        if at > first and (length + own > MOST_ASKED_BYTES or at - first == MOST_RECORDS):
            yield records[first:at]
            first, length = at, 0
        length += own
    if first < len(records):
        yield records[first:]


def _cut(record: Record) -> Record:
    """One byte more than is looked into shows that a value is too large."""
    return Record(
        record.offset,
        record.timestamp,
        None if record.key is None else bytes(record.key[:MOST_BYTES]),
        None if record.value is None else bytes(record.value[: MOST_BYTES + 1]),
        tuple((name, None if value is None else bytes(value[:MOST_BYTES])) for name, value in record.headers),
    )


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "headrace.console.records.filter_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def _asked(process: subprocess.Popen[bytes], body: bytes, count: int) -> bytes:
    """Fewer bytes where the process ended, or did not answer."""
    asking, answering = process.stdin, process.stdout
    assert asking is not None
    assert answering is not None
    try:
        asking.write(LENGTH.pack(len(body)) + body)
        asking.flush()
        return _answered(answering, count)
    except BrokenPipeError:
        return b""


def _answered(answering: IO[bytes], count: int) -> bytes:
    if not select.select([answering], [], [], WALL_SECONDS)[0]:
        return b""
    return answering.read(count)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            # What was not written yet goes nowhere.
            try:
                pipe.close()
            except BrokenPipeError:
                continue
