"""Restarting brokers one after the other: who is next, and what speaks against it.

Decisions alone. `headrace cluster roll` looks, asks here, and acts.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from headrace.client.broker_health import BrokerHealth
from headrace.client.findings import KINDS
from headrace.client.health import MIN_ISR, Health, Observation
from headrace.config.health import STARTED_MS
from headrace.core.ids import TopicPartition

UPTIME: Final = "uptime.seconds"
_DOUBTS: Final = (
    "zookeeper-silent",
    "partitions-offline",
    "partitions-under-min-isr",
    "records-unreadable",
    "zookeeper-cut-off",
    "brokers-silent",
    "brokers-down",
    "partitions-under-replicated",
    "moving",
)
"""What keeps a cluster from being well. The others do not get worse by a restart."""
_NAMED: Final = 5


def doubt(seen: Health) -> str:
    """Why no broker may be restarted now; empty if one may."""
    if seen.is_well:
        return ""
    found = next((each for name in _DOUBTS if (each := KINDS[name](seen)) is not None), None)
    if found is None:
        return f"the cluster is {seen.verdict}"
    more = f" and {len(found.where) - _NAMED} more" if len(found.where) > _NAMED else ""
    where = ", ".join(found.where[:_NAMED])
    return f"{found.headline}: {where}{more}" if where else found.headline


def pausing(seen: Observation, broker_id: int) -> list[TopicPartition]:
    """Partitions that refuse acks=all, or have no leader, while this broker restarts."""
    return [
        TopicPartition(topic.name, state.partition)
        for topic in seen.topics
        for state in topic.partitions
        if broker_id in state.isr
        and len(state.isr) - 1 < min(seen.min_isr.get(topic.name, 1), len(state.replicas))
    ]


def pause_doubt(partitions: Collection[TopicPartition], broker_id: int) -> str:
    if not partitions:
        return ""
    shown = ", ".join(str(each) for each in sorted(partitions)[:_NAMED])
    more = f" and {len(partitions) - _NAMED} more" if len(partitions) > _NAMED else ""
    return (
        f"without broker {broker_id} fewer than {MIN_ISR} replicas would be in sync, and writes would wait or"
        f" fail: {shown}{more}"
    )


def next_broker(left: Collection[int], controller: int) -> int:
    """The controller is the last, so that there is one change of controllers in all."""
    return min(left, key=lambda number: (number == controller, number))


def started_ms(told: BrokerHealth | None) -> int | None:
    text = "" if told is None else told.figures.get(STARTED_MS, "")
    return int(text) if text.isdecimal() else None


def tells_its_age(told: BrokerHealth) -> bool:
    return started_ms(told) is not None or told.figures.get(UPTIME, "").isdecimal()


def is_restarted(before: BrokerHealth, after: BrokerHealth, seconds: float) -> bool:
    """Whether another process answers than `seconds` ago. One of an earlier version tells its age alone."""
    first, last = started_ms(before), started_ms(after)
    if first is not None and last is not None:
        return first != last
    uptime = after.figures.get(UPTIME, "")
    return uptime.isdecimal() and int(uptime) <= seconds
