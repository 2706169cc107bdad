"""What is counted of the history in the object store, as Kafka counts it of its RemoteLogManager. Written by
the event loop alone."""

from __future__ import annotations

from typing import NamedTuple


class TieringMetrics:
    __slots__ = (
        "copied_bytes",
        "copy_errors",
        "copy_requests",
        "delete_errors",
        "delete_requests",
        "fetch_errors",
        "fetch_requests",
        "fetched_bytes",
        "throttled_ms",
    )

    def __init__(self) -> None:
        self.copied_bytes = 0
        self.copy_requests = 0
        """Segments that this broker tried to copy."""
        self.copy_errors = 0
        self.delete_requests = 0
        """Times that it deleted objects that were given up."""
        self.delete_errors = 0
        self.fetched_bytes = 0
        self.fetch_requests = 0
        self.fetch_errors = 0
        self.throttled_ms = 0
        """Waited because of remote.log.manager.copy.max.bytes.per.second."""


class TierGauges(NamedTuple):
    """Of one topic: its partitions that this broker leads."""

    topic: str
    copy_lag_bytes: int
    """Of sealed segments that are not in the store."""
    copy_lag_segments: int
    oldest_lag_seconds: float
    """Since when the oldest of them has waited."""
    remote_bytes: int
    stopped: int
    """Partitions whose history is neither extended nor shortened until somebody looks."""
