"""Seeds with damaged files: small clusters, small segments and short lives, so that there can be many.

They begin at FIRST_DAMAGED, so that the number of any other run still means that run.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tests.simulation.generator import Plan
from tests.simulation.retention import NO_RETENTION, Retention

FIRST_DAMAGED: Final = 2_000_000

PROPERTIES: Final = {
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "log.flush.scheduler.interval.ms": "500",
}
BESIDE: Final = (
    "kill",
    "bounce",
    "stop",
    "suspect",
    "prefer",
    "stall",
    "pause",
    "cut",
    "power",
    "delete records",
)
"""Other faults that come with damage; some of them are drawn."""
SHAPES: Final = ((2, 2, 2), (3, 3, 2), (3, 3, 2), (3, 2, 2), (3, 3, 3))
"""Brokers, replicas, and how many of these must be in sync."""


def draw_damaged(random: Random) -> Plan:
    brokers, replication, min_in_sync = random.choice(SHAPES)
    damage = random.choice(
        (
            ("damage at a stop",),
            ("damage at a kill",),
            ("damage at a stop", "damage at a kill"),
            ("damage in service",),
            ("damage at a stop", "damage at a kill", "damage in service"),
        )
    )
    beside = random.sample(BESIDE, k=random.randint(0, 3))
    if brokers > replication:
        beside.append("reassign")
    retention = random.choice((NO_RETENTION, NO_RETENTION, Retention(2500), Retention(size=1500)))
    return Plan(
        brokers=brokers,
        partitions=random.choice((1, 1, 2)),
        replication=replication,
        min_in_sync=min_in_sync,
        synced=random.random() < 0.3,
        producers=1,
        consumers=1,
        pause=random.choice((0.05, 0.1)),
        seconds=random.uniform(3.0, 7.0),
        faults=(*damage, "copy", *beside),
        gap=random.choice((0.4, 0.8, 1.2)),
        theme="damaged files",
        segment_bytes=random.choice((200, 400, 800)),
        retention=retention,
        turns=random.random() < 0.4 and replication > min_in_sync,
    )
