"""Builds what keeps history in an object store, for a broker that has one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack

from headrace.broker.replicas.host import ReplicaHost
from headrace.broker.storage.integrity import Integrity
from headrace.broker.tiering.thread_limit import LimitedThreads
from headrace.broker.tiering.tiering import Tiering
from headrace.controller.topic_image import TopicImage
from headrace.core.ports_objects import ObjectStore


def make_tiering(
    parts: ReplicaHost,
    integrity: Integrity,
    host: Callable[[TopicImage, Iterable[int]], None],
    store: ObjectStore,
    stops: AsyncExitStack,
) -> Tiering:
    runtime = parts.runtime
    loop = runtime.loop
    copiers = LimitedThreads(loop, "tier", lambda: runtime.config.remote_log_manager_copier_thread_pool_size)
    readers = LimitedThreads(loop, "tier-read", lambda: runtime.config.remote_log_reader_threads)
    close: Callable[[], None] = getattr(store, "close", lambda: None)
    stops.callback(close)
    stops.callback(copiers.close)
    stops.callback(readers.close)
    return Tiering(parts, integrity, host, store, copiers, readers)
