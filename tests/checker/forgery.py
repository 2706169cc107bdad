"""Good histories made bad, each in one way: whoever calls a recorded run good must call these bad.

Every function takes a history that has no anomaly and returns a copy of it that has the named one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from tests.checker.anomalies import Kind
from tests.checker.history import Action, History, Operation, Outcome, Poll, Send, Subscribe, Value
from tests.checker.order import orders_of

Place = tuple[str, Value]


def lose_a_committed_value(history: History) -> History:
    """Nobody ever read it, and later ones of its key were read."""
    place = _read_send(history, Outcome.OK, followed=True)
    return _with(history, lambda operation: [_without(action, place) for action in operation.actions])


def lose_the_last_value(history: History) -> History:
    place = _read_send(history, Outcome.OK, followed=False)
    return _with(history, lambda operation: [_without(action, place) for action in operation.actions])


def abort_what_was_read(history: History) -> History:
    """Its transaction was aborted, and it was read all the same."""
    place = _read_send(history, Outcome.OK, followed=True, kind="transaction")
    forged = _with(history, lambda operation: list(operation.actions))
    for operation in forged.operations:
        if any((send.key, send.value) == place for send in operation.sends()):
            operation.outcome = Outcome.FAIL
    return forged


def read_what_is_not_committed(history: History) -> History:
    """A transaction polls what itself has sent."""
    key, value = _read_send(history, Outcome.OK, followed=True, kind="transaction")

    def seen(operation: Operation) -> list[Action]:
        mine = next((one for one in operation.sends() if (one.key, one.value) == (key, value)), None)
        if mine is None:
            return list(operation.actions)
        offset = orders[key].offsets_of[value][0]
        return [*operation.actions, Poll({key: [(offset, value)]}, rebalanced=(key,))]

    orders = orders_of(history)
    return _with(history, seen)


def copy_a_value(history: History) -> History:
    """It stands at a second offset, behind everything."""
    key, value = _read_send(history, Outcome.OK, followed=True)
    beyond = max(orders_of(history)[key].at) + 1
    forged = _with(history, lambda operation: list(operation.actions))
    reading = forged.invoke("forger", "poll", [Poll()])
    forged.ok(reading, [Poll({key: [(beyond, value)]})])
    return forged


def read_in_a_circle(history: History) -> History:
    """Two transactions that each read what the other one has written."""
    forged = _with(history, lambda operation: list(operation.actions))
    places = [f"forged-{name}" for name in "ab"]
    for mine, other in (places, places[::-1]):
        actions: list[Action] = [Send(mine, "v", 0), Poll({other: [(0, "v")]})]
        forged.ok(forged.invoke(mine, "transaction", actions), actions)
    return forged


def consume_again(history: History) -> History:
    """A group consumes once more what a committed transaction has read."""
    key, value = _read_send(history, Outcome.OK, followed=True)
    offset = orders_of(history)[key].offsets_of[value][0]
    forged = _with(history, lambda operation: list(operation.actions))
    for process in ("forger-1", "forger-2"):
        actions: list[Action] = [Subscribe((key,), "forged"), Poll({key: [(offset, value)]})]
        forged.ok(forged.invoke(process, "transaction", actions), actions)
    return forged


FORGERIES: Final[Mapping[Kind, Callable[[History], History]]] = MappingProxyType(
    {
        Kind.LOST_WRITE: lose_a_committed_value,
        Kind.UNSEEN: lose_the_last_value,
        Kind.ABORTED_READ: abort_what_was_read,
        Kind.PRECOMMITTED_READ: read_what_is_not_committed,
        Kind.DUPLICATE: copy_a_value,
        Kind.READ_CYCLE: read_in_a_circle,
        Kind.CONSUMED_TWICE: consume_again,
    }
)


def _read_send(history: History, outcome: Outcome, *, followed: bool, kind: str = "") -> Place:
    """A send whose value was read: the highest of its key, or one with others above it."""
    orders = orders_of(history)
    for operation in history.operations:
        if operation.outcome is not outcome or (kind and operation.kind != kind):
            continue
        for send in operation.sends():
            order = orders[send.key]
            index = order.lowest_index(send.value)
            if send.value not in order.readers or send.offset is None or index is None:
                continue
            if followed == (index < order.highest_read):
                return send.key, send.value
    raise ValueError("the history has no such send, so nothing can be forged")


def _without(action: Action, place: Place) -> Action:
    if not isinstance(action, Poll) or place[0] not in action.found:
        return action
    kept = [record for record in action.found[place[0]] if record[1] != place[1]]
    return Poll({**action.found, place[0]: kept}, action.rebalanced)


def _with(history: History, change: Callable[[Operation], list[Action]]) -> History:
    forged = History(order_of_ends=copy.copy(history.order_of_ends))
    forged.operations = [replace(one, actions=tuple(change(one))) for one in history.operations]
    return forged
