"""Calls of the object store as values: what decides about them waits for none.

A job is a generator that yields calls, is sent what came of each, and returns a result. A thread carries it
out with `carry_out`; a simulation lets virtual time go on between a call and its outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from crc32c import crc32c

from headrace.core.ports import Buffer
from headrace.core.ports_objects import (
    Absent,
    ConditionalOutcome,
    DeleteOutcome,
    GetOutcome,
    ListOutcome,
    ObjectStore,
    OutcomeUnknown,
    PutOutcome,
    RangeOutcome,
    Refused,
    Tag,
)
from headrace.tier.segments import Stored

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Get:
    key: str


@dataclass(frozen=True, slots=True)
class GetRange:
    key: str
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Put:
    key: str
    pieces: Callable[[], Iterable[Buffer]]
    """Makes them anew each time."""


@dataclass(frozen=True, slots=True)
class PutIf:
    key: str
    data: bytes
    expected: Tag | Absent


@dataclass(frozen=True, slots=True)
class Delete:
    key: str


@dataclass(frozen=True, slots=True)
class List:
    prefix: str


Call = Get | GetRange | Put | PutIf | Delete | List
Outcome = GetOutcome | RangeOutcome | PutOutcome | ConditionalOutcome | DeleteOutcome | ListOutcome
Steps = Generator[Call, Outcome, _Result]


def perform(store: ObjectStore, call: Call, deadline_seconds: float) -> Outcome:
    match call:
        case Get(key):
            return store.get(key, deadline_seconds=deadline_seconds)
        case GetRange(key, start, length):
            return store.get_range(key, start, length, deadline_seconds=deadline_seconds)
        case Put(key, pieces):
            return store.put(key, pieces(), deadline_seconds=deadline_seconds)
        case PutIf(key, data, expected):
            return store.put_if(key, data, expected, deadline_seconds=deadline_seconds)
        case Delete(key):
            return store.delete(key, deadline_seconds=deadline_seconds)
        case List(prefix):
            return store.list(prefix, deadline_seconds=deadline_seconds)


def carry_out(store: ObjectStore, steps: Steps[_Result], deadline_seconds: float) -> _Result:
    """Waits for each call, so it belongs into a thread."""
    try:
        call = next(steps)
        while True:
            call = steps.send(perform(store, call, deadline_seconds))
    except StopIteration as ended:
        result: _Result = ended.value
        return result


def reason_of(outcome: Outcome) -> str:
    """Why nothing came of a call."""
    if isinstance(outcome, OutcomeUnknown | Refused):
        return outcome.reason
    return f"the store answered {type(outcome).__name__}"


class Summed:
    """Pieces, and what they were together when they were taken the last time."""

    def __init__(self, pieces: Callable[[], Iterable[Buffer]]) -> None:
        self._pieces = pieces
        self.stored = Stored(0, 0)

    def __call__(self) -> Iterator[Buffer]:
        size = checksum = 0
        for piece in self._pieces():
            size += len(piece)
            checksum = crc32c(piece, checksum)
            yield piece
        self.stored = Stored(size, checksum)
