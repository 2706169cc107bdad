"""Batches that come to a new leader before others that must come first.

A producer has some under way when the leader changes. The old leader refuses them, and librdkafka sends what
is next to the new one before those are back in its queue. That looks like a gap, and to the answer
OUT_OF_ORDER_SEQUENCE_NUMBER it takes a new epoch, with which it writes a second time what other partitions
have of it and have not acknowledged: what an old leader had appended, and its successor has copied. So for
some seconds a new leader tells such a producer what the old one did, and the client sends all of it again in
order. What it has once had a batch of in this term, it has had in order, and a gap is a gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.core.errors import NotLeader
from headrace.protocol.batch import BatchHeader

if TYPE_CHECKING:
    from headrace.replication.leading import LeaderTerm
    from headrace.replication.partition import Partition

EARLY_SECONDS: Final = 5.0
"""After a leader's term began. What was lost, by an unclean election, must be told at last."""
_SEQUENCES: Final = 0x7FFFFFFF


def refuse_early(partition: Partition, term: LeaderTerm, header: BatchHeader, now: float) -> None:
    """Raises NotLeader for a batch that others must precede. To be called while `term` is new."""
    if now - term.began >= EARLY_SECONDS:
        term.is_new = False
        return
    if header.producer_id < 0 or header.base_sequence < 0:
        return
    entry = partition.log.producers.get(header.producer_id)
    if entry is not None and header.producer_epoch < entry.epoch:
        return
    expected = 0
    if entry is not None and header.producer_epoch == entry.epoch and entry.batches:
        if entry.batches[-1].last_offset >= term.start_offset or entry.duplicate_of(header) is not None:
            return
        expected = (entry.last_sequence + 1) & _SEQUENCES
    if header.base_sequence != expected:
        raise NotLeader(
            f"{partition.topic_partition} has a new leader, and of producer {header.producer_id} sequence"
            f" {header.base_sequence} came before {expected}: send them again, in order"
        )
