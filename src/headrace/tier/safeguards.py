"""The rules that keep the history in the store true, each with a switch.

Every switch is on, always. They exist so that a simulation can turn one off and prove that it then sees harm.
The numbers are those of docs/invariants/tier.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class TierSafeguards:
    below_high_watermark: bool = True
    """Rule 2: only what is committed is uploaded."""
    below_last_stable: bool = True
    """Rule 2: nothing of a transaction that is open is uploaded."""
    conditional_writes: bool = True
    """Rule 3: a manifest is written only over the one that it was made from."""
    higher_epoch_stops: bool = True
    """Rule 4: who has seen a manifest of a later leader writes no more."""
    stored_before_named: bool = True
    """Rule 1: an object is named only when the store has said that it has it."""
    own_reading: bool = True
    """Rule 5: a replica deletes only what a manifest names that it has read itself."""
    unknown_is_not_empty: bool = True
    """Rule 6: nothing is deleted before a manifest was read."""
    each_offset_once: bool = True
    """Rule 7: what is here and in the store counts once for the size."""
    listed_in_pages: bool = True
    """Rule 8: what a page lists is no garbage, though the manifest does not name it."""
    own_or_older_garbage: bool = True
    """Rule 8: what a later leader has written is not ours to judge."""
    garbage_has_age: bool = True
    """Rule 8: a new object is no garbage yet."""
    claim_before_sweep: bool = True
    """Rule 8: no leader before us can name anything any more when we look for garbage."""
    new_attempt: bool = True
    """Rule 9: an object whose outcome is unknown is written again under another name."""
    settle_first: bool = True
    """Rule 9: a manifest whose outcome is unknown is settled before anything else."""
    claim_before_begin: bool = True
    """Rule 14: a leader that may lack committed records fences the ones before it, and then begins."""
    begin_at_tier_end: bool = True
    """Rule 14: and it begins where the store ends."""
    epochs_compared: bool = True
    """Rule 14: a log that is long enough may still be another one."""
    manifest_before_objects: bool = True
    """Rule 16: the start moves in the manifest, then objects go."""
    grace: bool = True
    """Rule 16: objects that were named go a while later."""
    fork_registered_first: bool = True
    """Rule 18: a fork is written down at its origin before it reads what it names."""
    forks_hold: bool = True
    """Rule 18: what a fork names is not deleted."""


ALL_ON: Final = TierSafeguards()
