"""Anomalies of what was written: offsets, copies, losses, and the order of sends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tests.checker.anomalies import Anomaly, Kind
from tests.checker.history import History, Outcome, Send
from tests.checker.order import KeyOrder, must_have_committed

NOTHING_DELETED: Final[Mapping[str, int]] = {}


def inconsistent_offsets(orders: dict[str, KeyOrder]) -> Iterator[Anomaly]:
    for key, order in orders.items():
        for offset, values in order.at.items():
            if len(values) > 1:
                yield Anomaly(Kind.INCONSISTENT_OFFSET, key, f"offset {offset} has values {values}")


def duplicates(orders: dict[str, KeyOrder]) -> Iterator[Anomaly]:
    for key, order in orders.items():
        for value, offsets in order.offsets_of.items():
            if len(offsets) > 1:
                yield Anomaly(Kind.DUPLICATE, key, f"value {value!r} is at offsets {sorted(offsets)}")


def losses(
    history: History,
    orders: dict[str, KeyOrder],
    *,
    final_reads: bool,
    deleted_before: Mapping[str, int] = NOTHING_DELETED,
) -> Iterator[Anomaly]:
    """Lost writes, and with `final_reads` also what was acknowledged and not seen by anybody."""
    for operation in history.operations:
        if not must_have_committed(operation, orders):
            continue
        for send in operation.sends():
            order = orders[send.key]
            deleted = deleted_before.get(send.key, 0)
            if send.value in order.readers or (deleted and (send.offset is None or send.offset < deleted)):
                continue
            index = order.lowest_index(send.value)
            where = f"value {send.value!r}, acknowledged at offset {send.offset}"
            if index is not None and index < order.highest_read:
                yield Anomaly(Kind.LOST_WRITE, send.key, where, (operation.number,))
            elif final_reads:
                yield Anomaly(Kind.UNSEEN, send.key, where, (operation.number,))


def sends_out_of_order(history: History, orders: dict[str, KeyOrder]) -> Iterator[Anomaly]:
    """Sends of one process to one key stand in the order in which they were invoked.

    Those of a transaction of unknown outcome count as soon as a value of it was read. What happens to a
    single send of unknown outcome is the library's business: nobody waits for it.
    """
    last: dict[tuple[str, str], tuple[int, Send, int]] = {}
    for operation in history.operations:
        atomic = operation.kind == "transaction" and must_have_committed(operation, orders)
        if operation.outcome is not Outcome.OK and not atomic:
            continue
        for send in operation.sends():
            index = orders[send.key].lowest_index(send.value)
            if index is None:
                continue
            place = (operation.process, send.key)
            before = last.get(place)
            if before is not None and index <= before[0]:
                inside = before[2] == operation.number
                yield Anomaly(
                    Kind.SEND_ORDER_INSIDE if inside else Kind.SEND_ORDER,
                    send.key,
                    f"{send.value!r} was sent after {before[1].value!r} and lies before it",
                    (operation.number,) if inside else (before[2], operation.number),
                )
            last[place] = (index, send, operation.number)
