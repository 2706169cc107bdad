"""Carries out what the transaction coordinator has decided: markers to every partition, then the completion.

A decision stands once it is committed, so this goes on until every partition has its marker: through lost
answers, changes of leaders and missing replicas. A partition that was deleted needs none. When this broker no
longer leads the partition that holds the decision, whoever does begins again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.coordinators.coordinator import Coordinator
from headrace.broker.coordinators.internal_topics import TRANSACTIONS_TOPIC
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.requests.errors import code_of
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.transactions.marker_appends import MarkerAppends
from headrace.broker.transactions.marker_sender import MarkerSender
from headrace.broker.transactions.pending_markers import MarkerPlace, PendingMarkers
from headrace.core.completion import Completion
from headrace.core.errors import CoordinatorNotAvailable, RequestTimedOut
from headrace.core.failures import report
from headrace.core.ids import NO_BROKER
from headrace.core.tasks import spawn
from headrace.core.timers import Timer
from headrace.protocol.error_codes import ErrorCode
from headrace.transactions.ending import Markers
from headrace.transactions.shard import TransactionShard

FIRST_PAUSE = 0.02  # not final, and the next: tests are less patient
LONGEST_PAUSE = 1.0
_LONGEST_DOUBLING: Final = 6
ROUTED_AT_ONCE: Final = 20
"""Places of one transaction. The others have their turns: a marker costs as much as a small produce."""


class TransactionMarkerManager:
    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataCache,
        partitions: PartitionTable,
        coordinator: Coordinator[TransactionShard],
        markers: MarkerAppends,
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._partitions = partitions
        self._coordinator = coordinator
        self._markers = markers
        self._pending: dict[tuple[int, str], PendingMarkers] = {}
        """By partition of __transaction_state and transactional id, which has one transaction at a time."""
        self._senders: dict[int, MarkerSender] = {}
        self._pauses: dict[object, Timer] = {}
        self._waiting: dict[tuple[int, str], list[Completion[None]]] = {}
        self._routing: dict[asyncio.Task[None], None] = {}
        self._stopped = False

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def markers_to_route_again(self) -> int:
        """Their partition has no leader, or it has refused them for the moment."""
        return sum(isinstance(what, MarkerPlace) for what in self._pauses)

    @property
    def ends_to_write_again(self) -> int:
        return len(self._pauses) - self.markers_to_route_again

    def begin(self, partition: int, coordinator_epoch: int, markers: Markers) -> None:
        """A prepared transaction is committed, or was found so by a coordinator that took over."""
        if self._stopped:
            return
        key = (partition, markers.transactional_id)
        earlier = self._pending.get(key)
        if earlier is not None:
            earlier.is_over = True
        pending = self._pending[key] = PendingMarkers(partition, coordinator_epoch, markers)
        places = list(pending.left.values())
        for place in places[:ROUTED_AT_ONCE]:
            self._route(place)
        if len(places) > ROUTED_AT_ONCE:
            routing = spawn(
                "the markers of a transaction", self._route_all(places[ROUTED_AT_ONCE:]), self._runtime.loop
            )
            self._routing[routing] = None
            routing.add_done_callback(lambda done: self._routing.pop(done, None))
        if not markers.partitions:
            self._complete(pending)

    def when_over(self, partition: int, transactional_id: str) -> Completion[None] | None:
        """Decided when nothing is on its way for the id any more; None if nothing is."""
        key = (partition, transactional_id)
        if key not in self._pending:
            return None
        over: Completion[None] = Completion()
        self._waiting.setdefault(key, []).append(over)
        return over

    def _tell_over(self, key: tuple[int, str]) -> None:
        for over in self._waiting.pop(key, ()):
            over.complete(None)

    def stop(self) -> None:
        self._stopped = True
        for routing in list(self._routing):
            routing.cancel()
        for pause in self._pauses.values():
            pause.cancel()
        self._pauses.clear()
        for sender in self._senders.values():
            sender.stop()
        for pending in self._pending.values():
            pending.is_over = True
        self._pending.clear()
        for key in list(self._waiting):
            self._tell_over(key)

    # --- places ------------------------------------------------------------------------------------------

    async def _route_all(self, places: Sequence[MarkerPlace]) -> None:
        """The decision stands whatever happens meanwhile; each place is looked at as it is in its turn."""
        turns = self._runtime.turns
        for place in places:
            if turns.is_over:
                await turns.next()
            try:
                self._route(place)
            except Exception as error:  # of this one; a marker that is not written is missing for ever
                report(f"a marker for {place.topic}-{place.index}", error)
                self._route_later(place)

    def _route(self, place: MarkerPlace) -> None:
        """To whoever leads the partition now."""
        pending = place.pending
        if not place.is_due:
            return
        if not self._is_ours(pending):
            self._forget(pending)
            return
        topic = self._metadata.image.topic(place.topic)
        if topic is None or place.index not in topic:
            self._settle(place)
            return
        leader = topic.leader(place.index)
        if leader == NO_BROKER or not self._metadata.is_alive(leader):
            self._route_later(place)
            return
        if leader == self._runtime.broker_id:
            self._markers.append(place.topic, place.index, pending.marker()).when_done(
                lambda decided: self._on_result(place, code_of(decided.error))
            )
            return
        sender = self._senders.get(leader)
        if sender is None:
            sender = self._senders[leader] = MarkerSender(
                self._runtime, self._metadata, leader, self._on_result
            )
        sender.add(place)

    def _route_later(self, place: MarkerPlace) -> None:
        pause = min(FIRST_PAUSE * 2 ** min(place.failures, _LONGEST_DOUBLING), LONGEST_PAUSE)
        place.failures += 1
        self._later(place, pause)

    def _later(self, what: MarkerPlace | PendingMarkers, pause: float) -> None:
        if not self._stopped:
            self._pauses[what] = self._runtime.timers.after(
                pause, "markers tried again", partial(self._on_paused, what)
            )

    def _on_paused(self, what: MarkerPlace | PendingMarkers) -> None:
        del self._pauses[what]
        if isinstance(what, MarkerPlace):
            self._route(what)
        else:
            self._complete(what)

    def _on_result(self, place: MarkerPlace, code: ErrorCode) -> None:
        pending = place.pending
        if not place.is_due:
            return
        if code == ErrorCode.NONE:
            self._settle(place)
        elif code == ErrorCode.INVALID_PRODUCER_EPOCH:
            # The partition has seen a later epoch, which the coordinator gives only when this is done.
            self._log("a marker came too late", place, code)
            self._settle(place)
        elif code == ErrorCode.TRANSACTION_COORDINATOR_FENCED:
            self._log("another coordinator has taken over", place, code)
            self._forget(pending)
        else:
            self._route_later(place)

    def _settle(self, place: MarkerPlace) -> None:
        left = place.pending.left
        del left[place.topic, place.index]
        if not left:
            self._complete(place.pending)

    def _log(self, what: str, place: MarkerPlace, code: ErrorCode) -> None:
        self._runtime.log.warning(
            what,
            transactional_id=place.pending.markers.transactional_id,
            partition=f"{place.topic}-{place.index}",
            code=code.name,
        )

    # --- transactions ------------------------------------------------------------------------------------

    def _is_ours(self, pending: PendingMarkers) -> bool:
        held = self._partitions.find(TRANSACTIONS_TOPIC, pending.partition)
        return held is not None and held.is_leader and held.leader_epoch == pending.coordinator_epoch

    def _forget(self, pending: PendingMarkers) -> None:
        pending.is_over = True
        key = (pending.partition, pending.markers.transactional_id)
        if self._pending.get(key) is pending:
            del self._pending[key]
            self._tell_over(key)

    def _complete(self, pending: PendingMarkers) -> None:
        """Every partition has its marker: write that down."""
        if pending.is_over:
            return
        markers = pending.markers
        self._coordinator.ask_partition(
            pending.partition,
            lambda shard, _, now_ms: shard.complete(markers.transactional_id, markers.producer, now_ms),
        ).when_done(lambda decided: self._on_completed(pending, decided))

    def _on_completed(self, pending: PendingMarkers, decided: Completion[bool]) -> None:
        if isinstance(decided.error, (CoordinatorNotAvailable, RequestTimedOut)) and self._is_ours(pending):
            self._later(pending, LONGEST_PAUSE)  # replicas are missing
        else:
            self._forget(pending)
