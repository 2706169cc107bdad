"""A read that needs the object store first. Apart from `broker/tiering`, which a broker without a store does
not load."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.broker.tiering.history import PartitionHistory


class RemoteRead(Exception):
    """What is asked for has to be fetched from the store."""

    def __init__(self, history: PartitionHistory, offset: int) -> None:
        super().__init__(offset)
        self.history = history
        self.offset = offset
