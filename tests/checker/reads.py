"""Anomalies of what was read: values that should not be there, and the order in which they came."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.anomalies import Anomaly, Kind
from tests.checker.history import Assign, History, Operation, Outcome, Subscribe
from tests.checker.order import KeyOrder


def wrong_values(orders: dict[str, KeyOrder]) -> Iterator[Anomaly]:
    for key, order in orders.items():
        for value, reader in order.readers.items():
            writer = order.writers.get(value)
            if writer is None:
                yield Anomaly(Kind.INVENTED_READ, key, f"value {value!r} was never sent", (reader.number,))
            elif writer.outcome is Outcome.FAIL:
                yield Anomaly(
                    Kind.ABORTED_READ, key, f"value {value!r} was refused", (writer.number, reader.number)
                )


def precommitted_reads(history: History) -> Iterator[Anomaly]:
    for operation in history.operations:
        if operation.kind != "transaction":
            continue
        sent = {(send.key, send.value) for send in operation.sends()}
        for poll in operation.polls():
            for key, records in poll.found.items():
                for _, value in records:
                    if (key, value) in sent:
                        yield Anomaly(
                            Kind.PRECOMMITTED_READ, key, f"value {value!r} is its own", (operation.number,)
                        )


class _Position:
    """Where a process stands in each key, by dense index, and which operation brought it there."""

    def __init__(self) -> None:
        self.at: dict[str, tuple[int, int]] = {}
        self.subscribed = False

    def on_assign(self, assign: Assign) -> None:
        kept = () if assign.from_beginning else assign.keys
        self.at = {key: place for key, place in self.at.items() if key in kept}
        self.subscribed = False


def reading_order(history: History, orders: dict[str, KeyOrder]) -> Iterator[Anomaly]:
    """Each process reads each key record by record: nothing left out, nothing twice."""
    positions: dict[str, _Position] = {}
    for operation in history.operations:
        position = positions.setdefault(operation.process, _Position())
        for action in operation.actions:
            if isinstance(action, Assign):
                position.on_assign(action)
            elif isinstance(action, Subscribe):
                position.at.clear()
                position.subscribed = True
        yield from _polled(operation, position, orders)


def _polled(operation: Operation, position: _Position, orders: dict[str, KeyOrder]) -> Iterator[Anomaly]:
    for poll in operation.polls():
        for key in poll.rebalanced:
            position.at.pop(key, None)
        for key, records in poll.found.items():
            index_of = orders[key].index
            for offset, value in records:
                index = index_of[offset]
                before = position.at.get(key)
                position.at[key] = (index, operation.number)
                if before is None or index == before[0] + 1:
                    continue
                inside = before[1] == operation.number
                if not inside and position.subscribed:
                    continue
                yield _misstep(key, value, offset, index - before[0], before[1], operation.number)


def _misstep(key: str, value: object, offset: int, step: int, before: int, now: int) -> Anomaly:
    inside = before == now
    detail = f"value {value!r} at offset {offset} came {step} places after the one before it"
    if step > 1:
        kind = Kind.POLL_SKIP if inside else Kind.SKIP
    else:
        kind = Kind.POLL_STEP_BACK if inside else Kind.STEP_BACK
    return Anomaly(kind, key, detail, (now,) if inside else (before, now))


def consumed_twice(history: History) -> Iterator[Anomaly]:
    """What a group has consumed in a committed transaction is consumed: its offsets say so for ever."""
    group_of: dict[str, str] = {}
    consumers: dict[tuple[str, str, int], int] = {}
    for operation in history.operations:
        for action in operation.actions:
            if isinstance(action, Assign | Subscribe):
                group_of[operation.process] = action.group
        group = group_of.get(operation.process, "")
        if not group or operation.kind != "transaction" or operation.outcome is not Outcome.OK:
            continue
        for poll in operation.polls():
            for key, records in poll.found.items():
                for offset, value in records:
                    before = consumers.setdefault((group, key, offset), operation.number)
                    if before != operation.number:
                        detail = f"value {value!r} at offset {offset} was consumed by group {group} before"
                        yield Anomaly(Kind.CONSUMED_TWICE, key, detail, (before, operation.number))


def read_cycles(history: History, orders: dict[str, KeyOrder]) -> Iterator[Anomaly]:
    """Operations that each read what another of them wrote, around a circle: none of them came first."""
    read_from: dict[int, dict[int, None]] = {}
    for operation in history.operations:
        if operation.outcome is Outcome.FAIL or not any(operation.sends()):
            continue
        for poll in operation.polls():
            for key, records in poll.found.items():
                for _, value in records:
                    writer = orders[key].writers.get(value)
                    if writer is not None and writer is not operation:
                        read_from.setdefault(operation.number, {})[writer.number] = None
    for cycle in _cycles(read_from):
        yield Anomaly(Kind.READ_CYCLE, "", "each read what the next one wrote", cycle)


def _cycles(edges: dict[int, dict[int, None]]) -> Iterator[tuple[int, ...]]:
    """One cycle of every knot, found by walking depth first; each node is walked once."""
    done: set[int] = set()
    for start in edges:
        path: list[int] = []
        on_path: set[int] = set()
        stack: list[tuple[int, Iterator[int]]] = []
        node: int | None = start if start not in done else None
        while node is not None or stack:
            if node is not None:
                path.append(node)
                on_path.add(node)
                stack.append((node, iter(edges.get(node, ()))))
            node = None
            current, following = stack[-1]
            for target in following:
                if target in on_path:
                    yield tuple(path[path.index(target) :])
                elif target not in done:
                    node = target
                    break
            else:
                stack.pop()
                path.pop()
                on_path.discard(current)
                done.add(current)
