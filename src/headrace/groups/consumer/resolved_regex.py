"""The topics that a subscribed pattern was found to match."""

from __future__ import annotations

from typing import NamedTuple


class ResolvedRegex(NamedTuple):
    topics: frozenset[str]
    version: int
    """Of the metadata in which they were looked up."""
    timestamp_ms: int
