"""A customer and his orders as one, and what a change makes of them. Plain Python, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple


class Customer(NamedTuple):
    name: str
    city: str


class Order(NamedTuple):
    id: int
    cents: int
    status: str


class Known:
    """All that is known of one customer. Orders may come before he does."""

    def __init__(self, customer: Customer | None, orders: Iterable[Order]) -> None:
        self.customer = customer
        self._orders = {order.id: order for order in orders}

    @property
    def orders(self) -> list[Order]:
        return list(self._orders.values())

    def put(self, order: Order) -> None:
        self._orders[order.id] = order

    def remove(self, order: int) -> None:
        self._orders.pop(order, None)

    def enriched(self) -> dict[str, str]:
        """Key and value of each record that the topic should have of him."""
        if self.customer is None:
            return {}
        name, city = self.customer
        return {
            json.dumps({"id": order.id}): json.dumps({**order._asdict(), "customer": name, "city": city})
            for order in self._orders.values()
        }


def difference(before: dict[str, str], after: dict[str, str]) -> dict[str, str | None]:
    """What to send so that a reader who has `before` has `after`; None is a tombstone."""
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    return {**changed, **dict.fromkeys(before.keys() - after.keys())}
