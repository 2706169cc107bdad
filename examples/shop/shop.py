"""The shop: customers and orders in a database that knows nothing of topics. Rows come, change and go."""

from __future__ import annotations

import random
import threading
from typing import Any

import psycopg
from postgres import Postgres

TABLES = """
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, city text NOT NULL);
CREATE TABLE orders (
    id int PRIMARY KEY,
    customer_id int NOT NULL REFERENCES customers,
    cents int NOT NULL,
    status text NOT NULL
);
-- A deleted row is told as a whole: the join must know whose order it was.
ALTER TABLE customers REPLICA IDENTITY FULL;
ALTER TABLE orders REPLICA IDENTITY FULL;
"""
#: The other database. It has no foreign keys: changes of two topics come in no order among each other.
COPY = """
CREATE TABLE customers (id int PRIMARY KEY, name text, city text);
CREATE TABLE orders (id int PRIMARY KEY, customer_id int, cents int, status text);
CREATE TABLE orders_enriched (id int PRIMARY KEY, customer text, city text, cents int, status text);
"""
CITIES = ("Bergen", "Graz", "Lyon", "Porto", "Turku")


class Shop:
    def __init__(self, database: Postgres) -> None:
        self.changes, self.last_order = 0, 0
        self._chance = random.Random(1)
        self._customers: list[int] = []
        self._database = database

    def fill(self, customers: int, orders: int) -> None:
        """What was there before anybody captured changes."""
        with self._database.connect() as db:
            db.execute(TABLES)
            with db.transaction():
                for number in range(1, customers + 1):
                    self._customers.append(number)
                    row = number, f"customer {number}", self._chance.choice(CITIES)
                    db.execute("INSERT INTO customers VALUES (%s, %s, %s)", row)
                for _ in range(orders):
                    self._order(db)
        self.changes = 0

    def stay_open(self, closed: threading.Event) -> None:
        """Some fifty changes a second, until the shop is closed."""
        while not closed.wait(0.1):
            self.trade(5)

    def trade(self, times: int) -> None:
        with self._database.connect() as db, db.transaction():
            for _ in range(times):
                self._something(db)

    def _something(self, db: psycopg.Connection[Any]) -> None:
        draw = self._chance.random()
        customer, order = self._chance.choice(self._customers), self._chance.randint(1, self.last_order)
        if draw < 0.4:
            self._order(db)
        elif draw < 0.8:
            self._change(db, "UPDATE orders SET status = 'paid' WHERE id = %s", order)
        elif draw < 0.9:
            self._change(db, "DELETE FROM orders WHERE id = %s", order)
        elif draw < 0.99 or len(self._customers) < 10:
            city = self._chance.choice(CITIES)
            self._change(db, "UPDATE customers SET city = %s WHERE id = %s", city, customer)
        else:
            self._change(db, "DELETE FROM orders WHERE customer_id = %s", customer)
            self._change(db, "DELETE FROM customers WHERE id = %s", customer)
            self._customers.remove(customer)

    def _order(self, db: psycopg.Connection[Any]) -> None:
        self.last_order += 1
        customer, cents = self._chance.choice(self._customers), self._chance.randrange(100, 9_000)
        self._change(db, "INSERT INTO orders VALUES (%s, %s, %s, 'new')", self.last_order, customer, cents)

    def _change(self, db: psycopg.Connection[Any], statement: str, *values: object) -> None:
        self.changes += db.execute(statement.encode(), values).rowcount
