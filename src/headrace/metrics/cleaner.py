"""What the cleaner counts. Written by the event loop alone, as all counters are."""

from __future__ import annotations

from collections.abc import Callable


class CleanerMetrics:
    __slots__ = (
        "bytes_read",
        "bytes_written",
        "failed_passes",
        "last_pass_seconds",
        "last_run",
        "lost_workers",
        "map_utilisation",
        "max_dirty_ratio",
        "passes",
        "read_uncleanable",
        "records_kept",
        "records_read",
    )

    def __init__(self) -> None:
        self.passes = 0
        self.failed_passes = 0
        self.lost_workers = 0
        """Processes that ended in the middle of a job."""
        self.bytes_read = 0
        self.bytes_written = 0
        self.records_read = 0
        self.records_kept = 0
        self.last_pass_seconds = 0.0
        self.last_run = 0.0
        """When the cleaner last looked for work, in seconds of the clock that never goes back; 0: never."""
        self.max_dirty_ratio = 0.0
        """Of the dirtiest log, when the cleaner last looked."""
        self.map_utilisation = 0.0
        """How full the key map was in the last pass."""
        self.read_uncleanable: Callable[[], int] = int
        """How many partitions the cleaner has given up."""

    @property
    def recopied_ratio(self) -> float:
        """How much of what was read had to be written again."""
        return self.bytes_written / self.bytes_read if self.bytes_read else 0.0
