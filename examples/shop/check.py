"""Has everything arrived? Postgres itself joins, by SQL; each place must have the rows that it finds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postgres import Postgres
from pyspark.sql import SparkSession
from topics import ALL

from headrace.spark import read_tables
from headrace.spark.audit.config import AuditConfig
from headrace.spark.audit.job import Auditor
from headrace.spark.mirror import config as mirrors

#: What the shop has, and what the copy has of it. The judge of the third is the shop's own join.
SAME = {
    "customers": ("TABLE customers", "TABLE customers"),
    "orders": ("TABLE orders", "TABLE orders"),
    "orders_enriched": (
        "SELECT o.id, c.name, c.city, o.cents, o.status FROM orders o JOIN customers c ON c.id = customer_id",
        "SELECT id, customer, city, cents, status FROM orders_enriched",
    ),
}
WINDOW_MS = 10_000
Rows = set[tuple[Any, ...]]


@dataclass
class Verdict:
    rows: dict[str, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    #: Of the audit: how many windows are in which state.
    windows: Mapping[str, int] = field(default_factory=Counter)

    @property
    def holds(self) -> bool:
        return not self.differences and self.windows.keys() == {"certified"}

    def compare(self, who: str, expected: Rows, found: Rows) -> None:
        self.rows[who] = len(found)
        if found != expected:
            missing, other = sorted(expected - found)[:3], sorted(found - expected)[:3]
            self.differences.append(f"{who}: missing are {missing} ..., not in the shop {other} ...")


def compare_databases(shop: Postgres, copy: Postgres) -> Verdict:
    verdict = Verdict()
    for table, (ours, theirs) in SAME.items():
        verdict.compare(f"copy.{table}", shop.rows(ours), copy.rows(theirs))
    return verdict


def compare_table(verdict: Verdict, shop: Postgres, spark: SparkSession, file: Path) -> None:
    frame = read_tables(spark, file, "orders_enriched")["orders_enriched"]
    rows = frame.select("id", "customer", "city", "cents", "status").collect()
    verdict.compare("the table", shop.rows(SAME["orders_enriched"][0]), {tuple(row) for row in rows})


def audited(spark: SparkSession, mirror: Path, state: Path) -> Counter[str]:
    """Log and mirror, counted by windows of ten seconds: as `headrace audit run --mirror-config` does."""
    config = mirrors.load(mirror)
    audit = AuditConfig(
        config.source,
        topics=ALL,
        state=str(state),
        mirror=config,
        window_ms=WINDOW_MS,
        lateness_ms=0,
        with_producers=False,
    )
    auditor, states = Auditor(spark, audit), dict[tuple[str, int], str]()
    for _ in range(20):
        found = auditor.run_once().verdicts
        states |= {(each.topic, each.window_ms): each.state.value for each in found}
        if states.keys() and {"open", "incomplete"}.isdisjoint(states.values()):
            break
        time.sleep(WINDOW_MS / 4_000)  # a window has to be over before it can be certified
    return Counter(states.values())
