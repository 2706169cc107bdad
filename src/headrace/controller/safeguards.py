"""The rules that keep an acknowledged record, each with a switch.

Every switch is on, always. They exist so that the simulation can turn one off and prove that it then sees a
loss: a safeguard whose absence nobody notices is not tested.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ControllerSafeguards:
    no_resumed_leadership: bool = True
    """A new incarnation of a broker leads nothing and is in no ISR until it has proved itself."""
    proof_of_a_whole_log: bool = True
    """Who comes back stays eligible only if it stopped cleanly (or its host stayed up) as the incarnation
    that was registered."""
    directory_identity: bool = True
    """A replica whose directory was replaced is not the replica that was in the ISR."""
    eligible_leaders: bool = True
    """Only members of the ISR, eligible replicas and the last known leader are elected by themselves."""
    eligible_below_minimum: bool = True
    """Nobody is eligible beside an ISR that has its minimum: the high watermark moves on without them."""
    broker_epoch_in_request: bool = True
    """A request of a replaced incarnation is refused."""
    leader_and_partition_epoch: bool = True
    """A proposal is refused that was made in an older leader epoch, or on an older row."""
    broker_epoch_in_proposal: bool = True
    """A replica joins the ISR as the incarnation that fetched, not as the one registered since."""
    fenced_not_admitted: bool = True
    """A replica that is fenced, stopping or on a dead directory does not join the ISR."""


ALL_ON = ControllerSafeguards()
