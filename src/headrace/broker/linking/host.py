"""What links need of the broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import NamedTuple

from headrace.broker.cluster.channel import ServeHere
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.replicas.host import Channel, Flushes, Truncates
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime


class LinkHost(NamedTuple):
    runtime: Runtime
    metadata: MetadataCache
    partitions: PartitionTable
    channel: Channel
    flusher: Flushes
    truncations: Truncates
    serve_here: ServeHere
    ensure_topic: Callable[[str], Awaitable[object]]
    """Makes an internal topic if it is not there."""
    threads: Executor
    """For reads that may wait for a disk."""
