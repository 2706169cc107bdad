"""What is counted of damage, and of the scrub that looks for it. Written by the event loop alone."""

from __future__ import annotations


class ScrubMetrics:
    __slots__ = ("bytes_read", "cold_reads", "damage_found", "last_pass_ms", "pass_progress", "ranges_mended")

    def __init__(self) -> None:
        self.bytes_read = 0
        self.damage_found = 0
        """Damaged places in segments, whoever found them: a reader or the scrub."""
        self.ranges_mended = 0
        """Of these, those that were put back from another replica without fetching the rest."""
        self.cold_reads = 0
        """Ranges that threads have read and verified for fetches."""
        self.last_pass_ms = 0
        """When the last pass over all sealed segments ended, in milliseconds since 1970; 0: never."""
        self.pass_progress = 0.0
        """How much of all sealed bytes the pass under way has verified, from 0 to 1; 1 between two passes."""
