"""How many partitions one Produce or Fetch may name. Both are served in one go, from their frame."""

from __future__ import annotations

from typing import Final

from headrace.broker.replicas.partitions import PartitionTable
from headrace.protocol.limits import MAX_ELEMENTS

SMALL_FRAME_BYTES: Final = 32 * 1024
"""What fits in there is served at once, whatever it names."""
LEAST: Final = 2_000


def most_elements(partitions: PartitionTable, frame_bytes: int) -> int:
    """A client asks for what it believes to be here. It may be wrong about some, not about most."""
    if frame_bytes <= SMALL_FRAME_BYTES:
        return MAX_ELEMENTS
    return LEAST + 3 * len(partitions)
