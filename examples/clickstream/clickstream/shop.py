"""A small shop. Visitors wander from page to page, some of them buy, and their orders go their way.

There is no clock in here and no network: `step` says what happens next, and the seed decides it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from random import Random
from typing import NamedTuple

from clickstream.topics import ORDERS, PAGE_VIEWS

#: Where a visitor may go from a page. Who is not sent anywhere leaves.
WAYS = {
    "home": ("search", "offers", "product", "product", ""),
    "offers": ("product", "product", "home", ""),
    "search": ("product", "product", "search", ""),
    "product": ("product", "cart", "cart", "search", ""),
    "cart": ("checkout", "checkout", "product", ""),
    "checkout": ("thanks", "thanks", "thanks", "cart", ""),
    "thanks": ("home", "", ""),
}
#: What becomes of an order that is not cancelled.
NEXT_STATUS = {"placed": "paid", "paid": "packed", "packed": "shipped", "shipped": "delivered"}
_VISITORS_AT_ONCE = 50
#: The chance that one of them goes on, for each step of a visitor.
_CHANCE_OF_EACH_ORDER = 0.001
_CHANCE_OF_CANCELLING = 0.05
_CHANCE_OF_A_BROKEN_VIEW = 1 / 1_000


class Record(NamedTuple):
    topic: str
    key: str
    #: None is a tombstone: what the key stood for is gone.
    value: bytes | None


@dataclass(frozen=True)
class Order:
    customer: str
    status: str
    items: int
    total: Decimal


class Shop:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._visitors: dict[str, str] = {}
        self._seen = 0
        self._moving: list[str] = []
        #: The shop's own books: every order that was not cancelled, as it is now.
        self.orders: dict[str, Order] = {}
        self.placed = 0
        self.cancelled = 0

    def step(self) -> Iterator[Record]:
        """One visitor goes on to a page. Now and then an order goes on too."""
        visitor, came_from = self._somebody()
        page = self._random.choice(WAYS[came_from]) if came_from else "home"
        if not page:
            del self._visitors[visitor]
            page, visitor, came_from = "home", self._newcomer(), ""
        self._visitors[visitor] = page
        yield self._view(visitor, page, came_from)
        if page == "thanks":
            yield self._place(visitor)
        if self._random.random() < _CHANCE_OF_EACH_ORDER * len(self._moving):
            yield self._go_on(self._random.choice(self._moving))

    def _somebody(self) -> tuple[str, str]:
        if len(self._visitors) < _VISITORS_AT_ONCE:
            return self._newcomer(), ""
        visitor = self._random.choice(tuple(self._visitors))
        return visitor, self._visitors[visitor]

    def _newcomer(self) -> str:
        self._seen += 1
        return f"visitor-{self._seen}"

    def _view(self, visitor: str, page: str, referrer: str) -> Record:
        value = json.dumps({"visitor": visitor, "page": page, "referrer": referrer}).encode()
        if self._random.random() < _CHANCE_OF_A_BROKEN_VIEW:
            value = value[: len(value) // 2]  # an old version of the app; every shop has one
        return Record(PAGE_VIEWS, visitor, value)

    def _place(self, customer: str) -> Record:
        self.placed += 1
        items = self._random.randint(1, 5)
        total = Decimal(self._random.randint(500, 9_999) * items) / 100
        number = f"order-{self.placed}"
        self._moving.append(number)
        return self._change(number, Order(customer, "placed", items, total))

    def _go_on(self, number: str) -> Record:
        order = self.orders[number]
        if self._random.random() < _CHANCE_OF_CANCELLING:
            self._moving.remove(number)
            self.cancelled += 1
            del self.orders[number]
            return Record(ORDERS, number, None)
        status = NEXT_STATUS[order.status]
        if status not in NEXT_STATUS:
            self._moving.remove(number)
        return self._change(number, replace(order, status=status))

    def _change(self, number: str, order: Order) -> Record:
        self.orders[number] = order
        return Record(ORDERS, number, json.dumps(asdict(order), default=float).encode())
