"""Timestamps of ListOffsets that stand for offsets, and who may ask which replica."""

from __future__ import annotations

from typing import Final

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
FIRST_WITH_LEADER_EPOCH: Final = 4
"""Version of ListOffsets."""
DEBUGGING_CONSUMER: Final = -2
"""The replica id of a tool that asks any replica, not only the leader."""
