"""A history: what processes asked of a log, and what came of it, in the order in which it happened.

An operation is invoked once and then ends as `ok` (it happened), `fail` (it certainly did not) or `unknown`
(it may have, or may yet). One that never ends is unknown. An operation holds actions: one send, one poll, or
several of both in a transaction. Values are unique within a key; a key is one topic-partition.

    history = History()
    op = history.invoke("producer-1", "send", [Send("orders-0", 17)])
    history.ok(op, [Send("orders-0", 17, offset=4)])
    op = history.invoke("consumer-1", "poll", [Poll()])
    history.ok(op, [Poll({"orders-0": [(4, 17)]})])

`history.write(path)` and `History.read(path)` keep it as JSON lines, one line per event, so that a run that
was cut off can still be judged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

Value = int | str


class Outcome(Enum):
    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


class Send(NamedTuple):
    key: str
    value: Value
    offset: int | None = None
    """Where it was stored, as far as its sender was told."""


class Poll(NamedTuple):
    found: Mapping[str, Sequence[tuple[int, Value]]] = {}
    """For each key what came, in the order in which it came: (offset, value)."""
    rebalanced: tuple[str, ...] = ()
    """Keys that were given to or taken from the process since its last poll: their position may jump."""


class Assign(NamedTuple):
    """From now on the process reads these keys. Positions of keys that it read before are kept."""

    keys: tuple[str, ...]
    from_beginning: bool = False
    """It also seeks: no position is kept."""
    group: str = ""
    """Its transactions commit the offsets of what they poll to this group; to none if it is empty."""


class Subscribe(NamedTuple):
    """From now on a group decides what the process reads: its position may jump between polls."""

    topics: tuple[str, ...]
    group: str = ""
    """As for `Assign`."""


Action = Send | Poll | Assign | Subscribe


@dataclass(slots=True)
class Operation:
    """One operation. `kind` is for people, except that only a "transaction" is atomic."""

    number: int
    process: str
    kind: str
    actions: Sequence[Action]
    """As invoked, and once it has ended as completed."""
    outcome: Outcome = Outcome.UNKNOWN
    ended: bool = False
    error: str = ""
    invoked_at: float = 0.0
    ended_at: float = 0.0
    """In seconds; only for people."""

    def sends(self) -> Iterator[Send]:
        return (action for action in self.actions if isinstance(action, Send))

    def polls(self) -> Iterator[Poll]:
        return (action for action in self.actions if isinstance(action, Poll))

    def __str__(self) -> str:
        return f"#{self.number} {self.process} {self.kind} {self.outcome.value}"


@dataclass(slots=True)
class History:
    operations: list[Operation] = field(default_factory=list)
    """In the order of their invocation; an operation's number is its place here."""
    clock: Callable[[], float] | None = None
    on_event: Callable[[dict[str, Any]], None] | None = None
    """Called with each event as it is recorded, for histories that are written while they grow."""
    order_of_ends: list[int] = field(default_factory=list)

    def invoke(self, process: str, kind: str, actions: Iterable[Action] = ()) -> int:
        number = len(self.operations)
        operation = Operation(number, process, kind, tuple(actions), invoked_at=self._now())
        self.operations.append(operation)
        self._tell(operation, "invoke", operation.invoked_at)
        return number

    def ok(self, operation: int, actions: Iterable[Action] | None = None) -> None:
        self._end(operation, Outcome.OK, actions, "")

    def fail(self, operation: int, error: str = "", actions: Iterable[Action] | None = None) -> None:
        """Certainly not written. Polls of a transaction that failed still say what was seen."""
        self._end(operation, Outcome.FAIL, actions, error)

    def unknown(self, operation: int, error: str = "", actions: Iterable[Action] | None = None) -> None:
        self._end(operation, Outcome.UNKNOWN, actions, error)

    def _end(self, number: int, outcome: Outcome, actions: Iterable[Action] | None, error: str) -> None:
        operation = self.operations[number]
        if operation.ended:
            raise ValueError(f"{operation} has ended already")
        if actions is not None:
            operation.actions = tuple(actions)
        operation.outcome = outcome
        operation.ended = True
        operation.error = error
        operation.ended_at = self._now()
        self.order_of_ends.append(number)
        self._tell(operation, outcome.value, operation.ended_at)

    def _now(self) -> float:
        return 0.0 if self.clock is None else self.clock()

    def _tell(self, operation: Operation, event: str, time: float) -> None:
        if self.on_event is not None:
            self.on_event(_event(operation, event, time))

    # --- as JSON lines ---

    def events(self) -> Iterator[dict[str, Any]]:
        """What `apply` needs to make this history again. Ends come after all that was invoked."""
        for operation in self.operations:
            yield _event(operation, "invoke", operation.invoked_at)
        for number in self.order_of_ends:
            operation = self.operations[number]
            yield _event(operation, operation.outcome.value, operation.ended_at)

    def write(self, path: Path) -> None:
        with path.open("w", encoding="utf-8") as file:
            for event in self.events():
                file.write(json.dumps(event, separators=(",", ":")) + "\n")

    @classmethod
    def read(cls, path: Path) -> History:
        history = cls()
        with path.open(encoding="utf-8") as file:
            for line in file:
                if line.endswith("\n"):  # a last line that was cut off never happened
                    history.apply(json.loads(line))
        return history

    def apply(self, event: Mapping[str, Any]) -> None:
        """Record one event that was written before."""
        actions = [action_of(item) for item in event.get("actions", ())]
        time = float(event.get("time", 0.0))
        if event["event"] == "invoke":
            number = self.invoke(event["process"], event["kind"], actions)
            if number != event["op"]:
                raise ValueError(f"operation {event['op']} is the {number}th in its file")
            self.operations[number].invoked_at = time
            return
        self._end(event["op"], Outcome(event["event"]), actions, event.get("error", ""))
        self.operations[event["op"]].ended_at = time


def _event(operation: Operation, event: str, time: float) -> dict[str, Any]:
    row: dict[str, Any] = {"event": event, "op": operation.number, "time": round(time, 6)}
    if event == "invoke":
        row |= {"process": operation.process, "kind": operation.kind}
    if operation.error:
        row["error"] = operation.error
    row["actions"] = [_plain(action) for action in operation.actions]
    return row


def _plain(action: Action) -> list[Any]:
    match action:
        case Send(key, value, offset):
            return ["send", key, value, offset]
        case Poll(found, rebalanced):
            return ["poll", {key: list(records) for key, records in found.items()}, list(rebalanced)]
        case Assign(keys, from_beginning, group):
            return ["assign", list(keys), from_beginning, group]
        case Subscribe(topics, group):
            return ["subscribe", list(topics), group]


def action_of(row: Sequence[Any]) -> Action:
    """The action that an event holds as plain values."""
    match row:
        case ["send", key, value, offset]:
            return Send(key, value, offset)
        case ["poll", found, rebalanced]:
            records = {key: [(offset, value) for offset, value in pairs] for key, pairs in found.items()}
            return Poll(records, tuple(rebalanced))
        case ["assign", keys, from_beginning, group]:
            return Assign(tuple(keys), from_beginning, group)
        case ["subscribe", topics, group]:
            return Subscribe(tuple(topics), group)
    raise ValueError(f"no such action: {row!r}")
