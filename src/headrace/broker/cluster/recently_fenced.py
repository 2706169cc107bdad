"""Brokers that have left a moment ago, and that Metadata still names.

A dead broker is fenced within a fraction of a second, and from then on nobody is told that it leads anything.
Its name and address stay for a while longer. Apache Kafka, too, names a broker until its session of nine
seconds is over, and clients have grown used to it: librdkafka from 2.10 on drops a broker that is no longer
named, but remembers it as the coordinator of a group. What it then has to send to that coordinator, the
offsets of a transaction, waits without end for a broker that it will never connect to again. As long as the
name is there it tries, fails, and asks who the coordinator is now.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial
from typing import Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.controller.delta import MetadataDelta

NAMED_SECONDS: Final = 9.0
"""Kafka's broker.session.timeout.ms. A client that is busy has asked for the new coordinator by then."""


class RecentlyFencedBrokers:
    """Invariant: who is in `brokers` is registered and fenced, and this process has known it before."""

    def __init__(self, runtime: Runtime, metadata: MetadataCache, forget_answers: Callable[[], None]) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._forget_answers = forget_answers
        self._alive: set[int] = set()
        self._left: dict[int, float] = {}
        """When, by the loop's clock."""
        self._begin()
        metadata.store.subscribe(self.on_delta)

    @property
    def brokers(self) -> Container[int]:
        return self._left

    def _begin(self) -> None:
        """What was read at the start does not say when somebody was fenced: it may have been just now.

        After a stop of the whole cluster the first broker that is back would otherwise be the only one.
        """
        for broker_id, registration in self._metadata.image.brokers.items():
            if registration.fenced:
                self._note(broker_id)
            else:
                self._alive.add(broker_id)

    def on_delta(self, delta: MetadataDelta) -> None:
        for broker_id in delta.brokers:
            registration = self._metadata.image.brokers.get(broker_id)
            if registration is None:
                self._alive.discard(broker_id)
                self._left.pop(broker_id, None)
            elif not registration.fenced:
                self._alive.add(broker_id)
                self._left.pop(broker_id, None)
            elif broker_id in self._alive or broker_id in self._left:
                # Also one that has registered again: it is on its way back. Who is new waits for its turn.
                self._alive.discard(broker_id)
                self._note(broker_id)

    def _note(self, broker_id: int) -> None:
        since = self._left[broker_id] = self._runtime.loop.time()
        self._runtime.timers.after(
            NAMED_SECONDS, "the end of a departure", partial(self._forget, broker_id, since)
        )

    def _forget(self, broker_id: int, since: float) -> None:
        if self._left.get(broker_id) == since:
            del self._left[broker_id]
            self._forget_answers()
