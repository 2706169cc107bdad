"""Which replicas of a partition nobody can use, for answers about topics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime

if TYPE_CHECKING:
    from headrace.controller.topic_image import TopicImage


def offline_replicas(
    runtime: Runtime,
    metadata: MetadataCache,
    partitions: PartitionTable,
    topic: TopicImage,
    index: int,
    replicas: Iterable[int],
) -> list[int]:
    """Those of dead brokers; and, of a lone broker, those whose log it cannot serve.

    In a cluster the controller is told of such a log, and the row itself changes. A lone broker stays the
    leader in its row, since nobody else could be, so that only this says that it does not work.
    """
    dead = [replica for replica in replicas if not metadata.is_alive(replica)]
    if runtime.is_standalone and partitions.is_offline(topic.name, index):
        dead.append(runtime.broker_id)
    return dead
