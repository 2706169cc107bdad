"""Before a quarantined replica is set aside and begun anew, its leader says whether it has the log.

After a fault that hit all replicas the metadata may name a leader that has not looked at its own files yet.
Whoever believed it would begin empty, and be elected so when nobody else is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from headrace.broker.cluster.log_ends import Key, log_ends
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.controller.topic_image import TopicImage
from headrace.core.ids import TopicPartition
from headrace.core.tasks import spawn
from headrace.log.manager import LogManager

AGAIN_SECONDS: Final = 1.0

Host = Callable[[TopicImage, list[int]], None]
Term = tuple[int, int]
"""A leader, and its epoch."""


class LeaderChecks:
    """Invariant: while a leader is to be asked about something, a task or a timer will do it."""

    def __init__(self, runtime: Runtime, metadata: MetadataCache, logs: LogManager, host: Host) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._logs = logs
        self._host_again = host
        self._confirmed: dict[Key, Term] = {}
        self._waiting: dict[int, dict[Key, Term]] = {}
        self._asking: dict[int, asyncio.Task[None]] = {}

    def has_log(self, topic: TopicImage, index: int) -> bool:
        """Whether the leader of this epoch has said so. If not it is asked, and the partition hosted again
        when it has answered."""
        key: Key = (topic.name, index)
        leader = topic.leaders[index]
        term = (leader, topic.leader_epochs[index])
        if self._confirmed.pop(key, None) == term:  # it is used once: the replica is set aside then
            return True
        self._waiting.setdefault(leader, {})[key] = term
        if leader not in self._asking:
            self._asking[leader] = spawn(f"asking broker {leader} for its logs", self._ask(leader))
        return False

    def stop(self) -> None:
        for task in self._asking.values():
            task.cancel()

    async def _ask(self, leader: int) -> None:
        try:
            while waiting := self._waiting.pop(leader, None):
                ends = await log_ends(self._runtime, self._metadata, leader, waiting)
                refused = [key for key in waiting if key not in ends]
                self._confirmed.update({key: waiting[key] for key in ends if key in waiting})
                self._host([key for key in waiting if key in ends])
                if refused:
                    again = partial(self._ask_again, refused)
                    self._runtime.timers.after(AGAIN_SECONDS, "asking a leader again", again)
        finally:
            del self._asking[leader]

    def _ask_again(self, keys: list[Key]) -> None:
        for name, index in keys:
            topic = self._quarantined(name, index)
            if topic is not None and self._metadata.is_alive(topic.leaders[index]):
                self.has_log(topic, index)

    def _host(self, keys: list[Key]) -> None:
        """Hosting asks here again, by whatever the metadata says now."""
        for name, index in keys:
            topic = self._quarantined(name, index)
            if topic is not None:
                self._host_again(topic, [index])

    def _quarantined(self, name: str, index: int) -> TopicImage | None:
        """The topic, if that replica of it still is."""
        topic = self._metadata.image.topic(name)
        if TopicPartition(name, index) not in self._logs.quarantined:
            return None
        return topic if topic is not None and index in topic else None
