"""Which replicas of a broker are out of sync: while some are, the next stop could take partitions offline."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from headrace.controller.topic_image import TopicImage

_NAMED = 3


async def replicas_behind(topics: Iterable[TopicImage], broker_id: int) -> str | None:
    """As a sentence; None if all are in sync. Those that a reassignment adds are left out.

    It looks at one topic in each turn of the loop.
    """
    names: list[str] = []
    count = 0
    for topic in list(topics):
        in_sync = set(topic.partitions_with_isr_member(broker_id))
        for partition in topic.partitions_with_replica(broker_id):
            if partition not in in_sync and broker_id not in topic.exceptional(partition).adding:
                count += 1
                if len(names) < _NAMED:
                    names.append(f"{topic.name}-{partition}")
        await asyncio.sleep(0)
    if not count:
        return None
    more = ", ..." if count > len(names) else ""
    return f"replicas out of sync: {count} ({', '.join(names)}{more})"
