"""Which offset is the latest of each key, as far as memory allows.

Short keys stand for themselves, long ones for a digest. A digest is longer than any key that stands for
itself, so the two never meet. The memory of an entry is estimated from above: see `_ENTRY_BYTES`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from hashlib import blake2b
from typing import Final, cast

RAW_KEY_BYTES: Final = 40
"""Keys up to this length are kept as they are: hashing one costs more than a few bytes are worth."""
DIGEST_BYTES: Final = 48
_ENTRY_BYTES: Final = 33 + 32 + 76 + 16
"""Of CPython: the head of a bytes object, an integer, the share in a dictionary that has just grown, and the
entry in the sorted list of survivors."""
_ROUNDING: Final = 16
_PLACE_BYTES: Final = 8
_ONE_IS_MISSING: Final = 1 << 31


def shortened(key: bytes) -> bytes:
    return key if len(key) <= RAW_KEY_BYTES else blake2b(key, digest_size=DIGEST_BYTES).digest()


class KeyMap:
    """Filled batch by batch in ascending order, then `seal`ed, then asked."""

    __slots__ = ("_latest", "_longest", "_opened", "_survivors", "begin", "end", "max_bytes")

    def __init__(self, begin: int, max_bytes: int) -> None:
        self.begin = begin
        """The first offset that is mapped: of a batch, as all offsets here are."""
        self.end = begin
        """Everything from `begin` up to here is mapped."""
        self.max_bytes = max_bytes
        self._latest: dict[bytes, int] = {}
        self._longest = DIGEST_BYTES // 2
        self._opened = array("q")
        """First offsets of mapped batches that `seal` cannot answer for."""
        self._survivors = array("q")

    def __len__(self) -> int:
        return len(self._latest)

    @property
    def used_bytes(self) -> int:
        key = -(-self._longest // _ROUNDING) * _ROUNDING
        return len(self._latest) * (_ENTRY_BYTES + key) + len(self._opened) * _PLACE_BYTES

    @property
    def utilisation(self) -> float:
        return self.used_bytes / self.max_bytes if self.max_bytes else 1.0

    def has_room_for(self, count: int) -> bool:
        """Whether so many keys more fit. The first batch always does, or there would be no progress."""
        if not self._latest:
            return True
        key = -(-self._longest // _ROUNDING) * _ROUNDING
        return self.used_bytes + count * (_ENTRY_BYTES + key) <= self.max_bytes

    # --- filling ---

    def put(self, base_offset: int, keys: list[bytes | None], deltas: list[int] | None) -> None:
        """The keys of one batch; `deltas` None: its offsets have no gaps. No key: the record is dropped."""
        offsets: range | list[int]
        if deltas is None:
            offsets = range(base_offset, base_offset + len(keys))
        else:
            offsets = [base_offset + delta for delta in deltas]
        longest = _longest(keys)
        if longest > RAW_KEY_BYTES:
            pairs = [(key, at) for key, at in zip(keys, offsets, strict=True) if key is not None]
            self._latest.update((shortened(key), at) for key, at in pairs)
            self._longest = DIGEST_BYTES
        else:
            self._latest.update(zip(cast("list[bytes]", keys), offsets, strict=True))
            self._longest = max(self._longest, longest)

    def open_again(self, base_offset: int) -> None:
        """That batch has to be looked at record by record: it has tombstones, gaps, or cannot be read."""
        self._opened.append(base_offset)

    def seal(self) -> None:
        """No more keys come."""
        self._survivors = array("q", sorted(self._latest.values()))

    # --- asking ---

    def knows(self, base_offset: int) -> bool:
        """Whether `survivors` can tell what is left of the batch that begins there, unopened."""
        if not self.begin <= base_offset < self.end:
            return False
        place = bisect_left(self._opened, base_offset)
        return place == len(self._opened) or self._opened[place] != base_offset

    def survivors(self, base_offset: int, last_offset: int) -> array[int]:
        """The offsets in that batch that are the latest of their keys."""
        first = bisect_left(self._survivors, base_offset)
        return self._survivors[first : bisect_right(self._survivors, last_offset, first)]

    def is_latest(self, key: bytes | None, offset: int) -> bool:
        """Whether no later record has this key. A record without a key is nobody's latest."""
        return key is not None and self._latest.get(shortened(key), -1) <= offset

    def touches(self, keys: list[bytes | None]) -> bool:
        """Whether any of these keys is in the map, or missing."""
        latest = self._latest
        if _longest(keys) <= RAW_KEY_BYTES:
            return any(map(latest.__contains__, keys))
        return any(key is None or shortened(key) in latest for key in keys)


def _longest(keys: list[bytes | None]) -> int:
    """The length of the longest key; more than any is long if one is missing, for the careful way."""
    try:
        return max(map(len, cast("list[bytes]", keys)), default=0)
    except TypeError:
        return _ONE_IS_MISSING
