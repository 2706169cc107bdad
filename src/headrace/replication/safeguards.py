"""The rules that keep a committed record, each with a switch.

Every switch is on, always. They exist so that a test can turn one off and prove that it then sees a loss: a
safeguard whose absence nobody notices is not tested. The rules are numbered as in docs/invariants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Safeguards:
    reconcile_before_append: bool = True
    """Rule 1: a follower says where its log ends, and in which epoch, before it is given anything."""
    fenced_exchange: bool = True
    """Rule 2: a leader answers a replica only if both are in the same leader epoch."""
    maximal_isr: bool = True
    """Rule 3: the high watermark waits for members of the ISR and of a proposed one."""
    min_isr_for_high_watermark: bool = True
    """Rule 3: it stands still while the ISR is smaller than min.insync.replicas."""
    high_watermark_admission: bool = True
    """Rule 4: nobody joins the ISR who has not reached the high watermark."""
    epoch_start_admission: bool = True
    """Rule 4: nobody joins who has not reached the start of the leader's epoch."""
    log_start_admission: bool = True
    """Rule 4: nobody joins who still has what the leader had deleted before it could compare their epochs."""
    broker_epoch_admission: bool = True
    """Rules 4 and 12: who joins is the incarnation that fetched, and the one that is registered now."""
    read_after_epoch_start: bool = True
    """Rule 5: a new leader says nothing about the end before its high watermark is at its epoch's start."""
    truncate_on_every_epoch: bool = True
    """Rule 7: a follower reconciles also when the leader of the new epoch is the old one."""
    stale_answer_dropped: bool = True
    """Rule 8: an answer counts only for the position that it was asked with."""
    new_term_forgets: bool = True
    """Rule 9: what followers said in an earlier epoch does not count."""
    unknown_isr_stays: bool = True
    """Rule 10: a proposal of unknown outcome holds the high watermark until a committed row settles it."""
    own_incarnation_only: bool = True
    """Rule 11: a broker acts on no row that was written for an earlier process of it."""
    doubtful_compared: bool = True
    """Rule 13: what a replica finds after a crash, and nothing vouches for, is compared before it counts."""
    sync_before_ack: bool = True
    """Where flush.messages demands it, only what is synced counts and is reported."""


ALL_ON: Final = Safeguards()
