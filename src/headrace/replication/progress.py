"""What a leader knows of one follower, from its fetches in this epoch alone."""

from __future__ import annotations

from typing import Final

from headrace.replication.assignment import UNKNOWN_BROKER_EPOCH

UNKNOWN: Final = -1
NEVER: Final = float("-inf")
STUCK_REPEATS: Final = 3


class FollowerProgress:
    """Rule 9: made anew for every term. Only a fetch of the term's own epoch changes it."""

    __slots__ = (
        "_leader_end_then",
        "_previous_fetch",
        "_repeats",
        "behind_since",
        "broker_epoch",
        "caught_up_at",
        "end_offset",
        "log_start_offset",
        "replica_id",
        "unproven_below",
    )

    def __init__(self, replica_id: int, caught_up_at: float) -> None:
        self.replica_id = replica_id
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.end_offset = UNKNOWN
        """-1 until its first fetch in this epoch."""
        self.log_start_offset = UNKNOWN
        self.unproven_below = 0
        """Where the leader's log began at this incarnation's first fetch: no epoch below can be compared."""
        self.caught_up_at = caught_up_at
        """When it last had everything that the leader had then; a member of the ISR begins with a grace."""
        self.behind_since = NEVER
        """When a look first found it behind; NEVER if the last look found it at the end."""
        self._leader_end_then = UNKNOWN
        self._previous_fetch = NEVER
        self._repeats = 0

    @property
    def is_stuck(self) -> bool:
        """It asks again and again for the same records, though they are there: it cannot use them."""
        return self._repeats >= STUCK_REPEATS

    def on_fetch(
        self, broker_epoch: int, offset: int, log_start: int, leader_start: int, leader_end: int, now: float
    ) -> bool:
        """True if it has caught up with what the leader had at its previous fetch, or has now."""
        if broker_epoch != self.broker_epoch:
            self.broker_epoch = broker_epoch
            self.unproven_below = leader_start
            self._leader_end_then = UNKNOWN
        caught_up = False
        # Only what it was given once before: the leader had more at its last fetch too.
        repeated = offset == self.end_offset and offset < self._leader_end_then
        self._repeats = self._repeats + 1 if repeated else 0
        if offset >= leader_end:
            self.caught_up_at = now
            caught_up = True
        elif self._leader_end_then >= 0 and offset >= self._leader_end_then:
            self.caught_up_at = max(self.caught_up_at, self._previous_fetch)
            caught_up = True
        self.end_offset = offset
        if log_start >= 0:
            self.log_start_offset = log_start
        self._leader_end_then = leader_end
        self._previous_fetch = now
        return caught_up

    def lags(self, leader_end: int, now: float, lag_seconds: float) -> bool:
        """Whether it has been behind for the whole lag time.

        A follower that has everything does not repeat its position, so its last fetch says little: what
        counts is since when it is behind, as those who look, at least twice per lag time, have found it.
        """
        if self.end_offset >= leader_end:
            self.behind_since = NEVER
            return False
        if self.behind_since == NEVER:
            self.behind_since = now
        return now - max(self.behind_since, self.caught_up_at) >= lag_seconds

    def inherit(self, earlier: FollowerProgress) -> None:
        """Only for a test that switches rule 9 off."""
        self.end_offset = earlier.end_offset
        self.broker_epoch = earlier.broker_epoch
