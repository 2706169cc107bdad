"""The states of a classic group. The values are Kafka's names on the wire."""

from __future__ import annotations

from enum import Enum


class ClassicState(Enum):
    EMPTY = "Empty"
    """No members. The group lives on for its offsets, or until they expire."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are asked to join again; joins are parked until all have, or time is up."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """The next generation is known; syncs are parked until its leader brings the assignment."""
    STABLE = "Stable"
    DEAD = "Dead"
    """Only told of a group that does not exist."""


EMPTY = ClassicState.EMPTY
PREPARING = ClassicState.PREPARING_REBALANCE
COMPLETING = ClassicState.COMPLETING_REBALANCE
STABLE = ClassicState.STABLE
DEAD = ClassicState.DEAD
