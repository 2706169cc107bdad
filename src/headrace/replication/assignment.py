"""What the committed metadata says about one partition, and whether it is said to this process."""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.replication.safeguards import ALL_ON, Safeguards

NO_LEADER: Final = -1
UNKNOWN_BROKER_EPOCH: Final = -1


class Assignment(NamedTuple):
    """One row of committed metadata."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    recovering: bool = False
    """The leader was elected outside the ISR and may lack records that were committed."""


class IsrProposal(NamedTuple):
    """What a leader asks the controller for. At most one proposal on the same row can be committed."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """For each member the incarnation that fetched (rule 12); -1 for the leader itself, which its sender
    fills in, and for a member of the committed ISR that has not fetched in this epoch yet."""


def concerns_this_process(
    registered_epoch: int | None, own_epoch: int, safeguards: Safeguards = ALL_ON
) -> bool:
    """Whether rows are meant for this process: the metadata has registered it, and nobody since (rule 11)."""
    return registered_epoch == own_epoch or not safeguards.own_incarnation_only
