"""What a coordinator knows of one transactional id. A value: the next one comes out of the next record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from headrace.transactions.states import TransactionState

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
HIGHEST_EPOCH: Final = 0x7FFF
"""Never given to a producer: it is what the last one that was given is fenced with."""
LAST_GIVEN_EPOCH: Final = HIGHEST_EPOCH - 1
FOREVER_MS: Final = 0x7FFFFFFF
"""As a timeout: a two-phase transaction, which only its owner ends."""

Partitions = Mapping[str, tuple[int, ...]]
"""By topic: partitions in ascending order. Topics are in the order in which they came."""
NO_PARTITIONS: Final[Partitions] = MappingProxyType({})


class Producer(NamedTuple):
    """An incarnation of a producer: what it signs its batches and requests with."""

    producer_id: int
    epoch: int

    @property
    def is_exhausted(self) -> bool:
        """After this epoch comes none that could be given to a producer, only another id."""
        return self.epoch >= LAST_GIVEN_EPOCH

    def raised(self) -> Producer:
        return Producer(self.producer_id, min(self.epoch + 1, HIGHEST_EPOCH))


class Transaction(NamedTuple):
    """Invariants: `partitions` is empty unless the state is ongoing or prepared. `next_producer_id` is set
    only where the producer that ends a transaction is, or will be, another one than wrote it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    """Who writes the transaction. Once it is prepared: what its markers are signed with."""
    timeout_ms: int
    update_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: Partitions = NO_PARTITIONS
    start_ms: int = -1
    previous_producer_id: int = NO_PRODUCER_ID
    """Whose the id was before the last change, so that a repeated request is known by it."""
    next_producer_id: int = NO_PRODUCER_ID
    next_producer_epoch: int = NO_EPOCH
    """With next_producer_id: who owns a transaction that was kept for it (KIP-939), or once it is prepared,
    who the producer will be when it is complete. Without an epoch that is epoch 0 of a new id."""
    client_version: int = 0
    """2 if the client that began or ended it knows that every end raises the epoch (KIP-890)."""

    @property
    def writer(self) -> Producer:
        return Producer(self.producer_id, self.producer_epoch)

    @property
    def is_kept(self) -> bool:
        """It goes on under another producer than the one that wrote it, which may only end it."""
        return self.state is TransactionState.ONGOING and self.next_producer_epoch != NO_EPOCH

    @property
    def holder(self) -> Producer:
        """Whose requests about this transaction count."""
        if self.next_producer_epoch == NO_EPOCH:
            return self.writer
        return Producer(self.next_producer_id, self.next_producer_epoch)

    @property
    def owner(self) -> Producer:
        """Whom the id belongs to now; of a prepared transaction, from its completion on."""
        if self.next_producer_id == NO_PRODUCER_ID:
            return self.writer
        return Producer(self.next_producer_id, max(self.next_producer_epoch, 0))

    def is_awaited_by(self, producer: Producer) -> bool:
        """Its end is answered before its markers are written. So whoever has the id from then on may be at
        its next transaction already: it has to wait, and is no stranger."""
        return self.state.is_prepared and producer == self.owner

    @property
    def never_times_out(self) -> bool:
        return self.timeout_ms == FOREVER_MS

    def is_overdue(self, now_ms: int) -> bool:
        """Also if it began further ahead than it may last: by a clock that was wrong, and was set back since.

        To wait for that time would hold back every reader of its partitions for as long as the clock was off.
        """
        return (
            self.state is TransactionState.ONGOING
            and not self.never_times_out
            and abs(now_ms - self.start_ms) > self.timeout_ms
        )


def united(partitions: Partitions, added: Iterable[tuple[str, int]]) -> Partitions:
    """The same mapping if there is nothing new in `added`."""
    indexes: dict[str, set[int]] = {}
    for topic, index in added:
        known = indexes.get(topic)
        if known is None:
            known = indexes[topic] = set(partitions.get(topic, ()))
        known.add(index)
    grown = {
        topic: tuple(sorted(known))
        for topic, known in indexes.items()
        if len(known) > len(partitions.get(topic, ()))
    }
    return {**partitions, **grown} if grown else partitions
