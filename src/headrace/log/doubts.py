"""Segments that nothing vouches for: after a crash one may be of another log, with offsets and epochs that
fit.

What a leader has there says whether it is (rule 13).
"""

from __future__ import annotations

from headrace.log.claims_file import FirstBatch
from headrace.log.segment import Segment


class Doubts:
    """Of the segments of one log, which it does not change but for what they are vouched for."""

    __slots__ = ("_are_some", "_segments")

    def __init__(self, segments: list[Segment]) -> None:
        self._segments = segments
        self._are_some = not all(segment.is_vouched for segment in segments)

    @property
    def first(self) -> FirstBatch | None:
        """How the first of them begins."""
        if not self._are_some:
            return None
        return next((first_batch(segment) for segment in self._segments if not segment.is_vouched), None)

    def first_before(self, offset: int) -> FirstBatch | None:
        """The same, if that segment ends there or before."""
        first = self.first
        if first is None:
            return None
        following = (each.base_offset for each in self._segments if each.base_offset > first.base_offset)
        end = next(following, None)
        return first if end is not None and end <= offset else None

    def settle(self, doubtful: FirstBatch | None) -> bool:
        """That segment is of this log; None: all are. False: none was in doubt."""
        if not self._are_some:
            return False
        for segment in self._segments:
            if doubtful is None or segment.base_offset == doubtful.base_offset:
                segment.is_vouched = True
        self._are_some = not all(segment.is_vouched for segment in self._segments)
        return True

    @property
    def listable(self) -> int:
        """How many of the first segments are sealed, and not in doubt: the manifest would vouch for them."""
        sealed = len(self._segments) - 1
        if not self._are_some:
            return sealed
        return next((at for at in range(sealed) if not self._segments[at].is_vouched), sealed)


def first_batch(segment: Segment) -> FirstBatch | None:
    checksum = segment.first_checksum
    return None if checksum is None or not segment.size else FirstBatch(segment.base_offset, checksum)
