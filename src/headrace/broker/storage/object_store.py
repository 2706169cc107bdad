"""The object store of a broker, if it has one. Only then is what works with it loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.replicas.host import ReplicaHost
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.integrity import Integrity
from headrace.controller.topic_image import TopicImage
from headrace.core.errors import ConfigError
from headrace.core.ports_objects import ObjectStore
from headrace.replication.assignment import Assignment
from headrace.replication.partition import Partition

if TYPE_CHECKING:
    from headrace.broker.tiering.tiering import Tiering

OnRow = Callable[[Partition], None]


def may_lead(tiering: Tiering | None, partition: Partition, row: Assignment) -> bool:
    return tiering is None or tiering.may_lead(partition, row)


async def open_store(runtime: Runtime) -> ObjectStore | None:
    if not runtime.config.remote_log_storage_system_enable:
        return None
    return await runtime.loop.run_in_executor(
        None, partial(runtime.environment.make_object_store, runtime.config)
    )


def tiering_with(
    store: ObjectStore | None,
    parts: ReplicaHost,
    integrity: Integrity,
    host: Callable[[TopicImage, Iterable[int]], None],
    stops: AsyncExitStack,
) -> Tiering | None:
    if store is None:
        return None
    from headrace.broker.tiering.assembling import make_tiering

    return make_tiering(parts, integrity, host, store, stops)


def followed_by(runtime: Runtime, consider: OnRow, tiering: Tiering | None) -> OnRow:
    """Who is told of each row of a partition, before anybody can produce to it."""

    def tell(partition: Partition) -> None:
        consider(partition)
        if tiering is not None:
            tiering.consider(partition)
        elif partition.log.config.remote_storage_enable:
            runtime.give_up(_without_store(partition))

    return tell


def _without_store(partition: Partition) -> ConfigError:
    """As in Kafka: without its store a broker would tell consumers that their records are gone."""
    return ConfigError(
        f"topic {partition.topic_partition.topic} has history in an object store: set"
        " remote.log.storage.system.enable=true and headrace.tier.url as they were"
    )
