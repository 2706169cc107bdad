"""Which replicas a broker cannot vouch for when it registers: damaged ones, and those that are not there.

It vouches for all others. One damaged file once made a broker a stranger as a whole: two brokers with one
each, and no partition of the cluster had a leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.core.ids import NO_TOPIC_ID, TopicPartition

if TYPE_CHECKING:
    from headrace.controller.image import MetadataImage
    from headrace.log.manager import LogManager


def find_lost(
    image: MetadataImage, broker_id: int, logs: LogManager, *, hosts_nothing: bool
) -> frozenset[tuple[str, int]]:
    """`hosts_nothing`: this process has hosted nothing yet. What it does not find then is missing, or was
    about to be made when the last process ended; later it may be waiting for its turn to be made."""
    lost = {(name.topic, name.partition) for name in logs.quarantined}
    if hosts_nothing:
        for topic in image.topics_by_name.values():
            for index in topic.partitions_with_replica(broker_id):
                log = logs.logs.get(TopicPartition(topic.name, index))
                if log is None or log.topic_id not in (topic.topic_id, NO_TOPIC_ID):
                    lost.add((topic.name, index))
    return frozenset(lost)
