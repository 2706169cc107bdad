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


def followed_by(consider: OnRow, tiering: Tiering | None) -> OnRow:
    """Who is told of each row of a partition, before anybody can produce to it."""
    if tiering is None:
        return consider

    def tell(partition: Partition) -> None:
        consider(partition)
        tiering.consider(partition)

    return tell
