"""What a history says about each key: which value stands at which offset, and what became of each value.

Offsets are made dense: control batches and batches that compaction removed leave gaps that are nobody's
fault. So two records are neighbours if nothing that anybody ever saw or was promised lies between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.checker.history import History, Operation, Outcome, Value


@dataclass(slots=True)
class KeyOrder:
    """One topic-partition."""

    at: dict[int, list[Value]] = field(default_factory=dict)
    """Values by offset, in the order of their discovery; more than one is an anomaly."""
    offsets_of: dict[Value, list[int]] = field(default_factory=dict)
    writers: dict[Value, Operation] = field(default_factory=dict)
    readers: dict[Value, Operation] = field(default_factory=dict)
    """Who read a value first."""
    index: dict[int, int] = field(default_factory=dict)
    """The dense index of an offset."""
    highest_read: int = -1
    """The highest index that anybody read."""

    def put(self, offset: int, value: Value) -> None:
        values = self.at.setdefault(offset, [])
        if value not in values:
            values.append(value)
            self.offsets_of.setdefault(value, []).append(offset)

    def lowest_index(self, value: Value) -> int | None:
        offsets = self.offsets_of.get(value)
        return None if offsets is None else min(self.index[offset] for offset in offsets)


def orders_of(history: History) -> dict[str, KeyOrder]:
    orders: dict[str, KeyOrder] = {}
    read_offsets: dict[str, int] = {}
    for operation in history.operations:
        for send in operation.sends():
            order = orders.setdefault(send.key, KeyOrder())
            if send.value in order.writers:
                raise ValueError(f"{send.key} {send.value!r}: values must be unique, or nothing can be told")
            order.writers[send.value] = operation
        for poll in operation.polls():
            for key, records in poll.found.items():
                order = orders.setdefault(key, KeyOrder())
                for offset, value in records:
                    order.put(offset, value)
                    order.readers.setdefault(value, operation)
                    read_offsets[key] = max(read_offsets.get(key, -1), offset)
    for operation in history.operations:
        if must_have_committed(operation, orders):
            for send in operation.sends():
                if send.offset is not None and send.offset >= 0:
                    orders[send.key].put(send.offset, send.value)
    for key, order in orders.items():
        order.index = {offset: index for index, offset in enumerate(sorted(order.at))}
        if key in read_offsets:
            order.highest_read = order.index[read_offsets[key]]
    return orders


def must_have_committed(operation: Operation, orders: dict[str, KeyOrder]) -> bool:
    """It was acknowledged, or its outcome is unknown and somebody has read a value of it.

    A transaction commits as a whole, so one value read proves the others. Sends that only share an
    operation prove nothing about each other.
    """
    if operation.outcome is Outcome.OK:
        return True
    if operation.outcome is Outcome.FAIL:
        return False
    sends = list(operation.sends())
    if operation.kind != "transaction" and len(sends) > 1:
        return False
    return any(send.value in orders[send.key].readers for send in sends)
