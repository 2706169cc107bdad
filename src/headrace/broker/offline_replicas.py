"""Which replicas of a partition nobody can use, for answers about topics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.controller.topic_image import TopicImage


def offline_replicas(broker: Broker, topic: TopicImage, index: int, replicas: Iterable[int]) -> list[int]:
    """Those of dead brokers; and, of a lone broker, those whose log it cannot serve.

    In a cluster the controller is told of such a log, and the row itself changes. A lone broker stays the
    leader in its row, since nobody else could be, so that only this says that it does not work.
    """
    dead = [replica for replica in replicas if not broker.is_alive(replica)]
    if broker.is_standalone and broker.partitions.is_offline(topic.name, index):
        dead.append(broker.broker_id)
    return dead
