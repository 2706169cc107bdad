"""What this broker holds, receives and sends, for whoever asks for `headrace.load`. Made in slices.

All of it is counted anyway: nothing here costs a record anything. Who wants rates asks twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.runtime.health_report import Figure
from headrace.config.load_report import LOAD
from headrace.controller.self_balancing.reports import (
    DirectorySpace,
    LedPartition,
    TopicTraffic,
    directory_figure,
    topic_figure,
)
from headrace.log.free_space import Space

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

UNKNOWN: Final = Space(-1, -1)
_MEANS_DIRECTORY: Final = "a log directory, its total and free bytes"
_MEANS_TOPIC: Final = "bytes in and out of a topic, and the partitions of it that this broker leads"


async def tell_load(context: RequestContext) -> list[Figure]:
    turns, storage = context.runtime.turns, context.storage
    told = []
    for number, directory in enumerate(storage.logs.directories):
        space = storage.disk_space.spaces.get(directory.path, UNKNOWN)
        figure = directory_figure(
            DirectorySpace(directory.path, directory.is_online, space.total, space.free), number
        )
        told.append(_figure(*figure, _MEANS_DIRECTORY))
    led: dict[str, list[LedPartition]] = {}
    for partition in list(context.partitions):
        if turns.is_over:
            await turns.next()
        if partition.is_leader and not partition.log.closed:
            name, index = partition.topic_partition
            log = partition.log
            led.setdefault(name, []).append(LedPartition(index, log.end_offset, log.size_bytes))
    for name, counted in context.runtime.metrics.topics():
        if turns.is_over:
            await turns.next()
        traffic = TopicTraffic(counted.bytes_in, counted.bytes_out, tuple(led.pop(name, ())))
        if traffic.led or traffic.bytes_in or traffic.bytes_out:
            told.append(_figure(*topic_figure(name, traffic), _MEANS_TOPIC))
    return told


def _figure(name: str, value: str, means: str) -> Figure:
    return Figure(f"{LOAD}.{name}", value, means)
