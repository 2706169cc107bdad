"""The proof that a partition is in a producer's transaction: from the question to the first append (KIP-890).

The coordinator is asked before a transaction's first batch is taken. While its answer is under way, a marker
may end that transaction here, and the answer would then speak of a transaction that is over. So the question
is noted with the producer; a marker, and the first append itself, take the note away, and an answer counts
only for the note that it was asked for.
"""

from __future__ import annotations


class Verification:
    """One producer's note. Invariant: once `is_verified`, the coordinator knows that this partition is in an
    open transaction of `epoch`, so that a marker must come here before that transaction is over."""

    __slots__ = ("began_ms", "epoch", "is_verified", "lowest_sequence", "raises_epochs")

    def __init__(self, epoch: int, sequence: int, raises_epochs: bool, began_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        """Of the batches that asked. A later one must not be taken before it: the earlier one, refused for a
        moment, would be out of order for ever."""
        self.raises_epochs = raises_epochs
        """The producer gets a new epoch with every transaction, so its first batch here has sequence 0."""
        self.is_verified = False
        self.began_ms = began_ms
