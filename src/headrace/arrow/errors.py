"""What can go wrong on the way from segments to columns, in sentences."""

from __future__ import annotations

from headrace.client.errors import ClientFailure


class DamagedHistory(ClientFailure):
    """Segments that are not what was written. What came before has been given."""

    def __init__(self, where: str, offset: int, reason: str) -> None:
        super().__init__(
            f"{where} is damaged at offset {offset}: {reason}",
            f"read up to it with end={offset}, or read another replica; `headrace log verify DIR` shows more",
        )


class HistoryGone(ClientFailure):
    """Retention was faster than the reader."""

    def __init__(self, partition: object, offset: int, start: int) -> None:
        super().__init__(
            f"records of {partition} from offset {offset} were deleted while they were read",
            f"what is there begins at offset {start}: read again from there",
        )
