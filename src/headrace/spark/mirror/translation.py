"""Which offset of the target stands for an offset of the source. Pure.

Each batch gives, for every partition in it, a *piece*: its runs (source offset, target offset, how many). All
pieces of a partition together say it of every record, and so of every offset: what a reader that stood at an
offset of the source would read next is the first mirrored record from there on, and its place is known.
Markers of transactions, records that compaction removed and records of others in the target are gaps between
runs. So nothing is approximated, however many of them there are.

A piece is one record of a compacted topic, and its key is where it begins. Many small ones are merged into a
large one from time to time, which takes the place of the first of them.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple

import numpy as np

from headrace.protocol.records import NewRecord
from headrace.security.acl import AclRule
from headrace.spark.mirror import acls
from headrace.spark.mirror.problems import MirrorRefused
from headrace.spark.sink.landing import Runs, joined

_HEAD: Final = Struct(">BqqqQ")
"""Version, behind the last source offset, first target offset, behind the last target offset, rows."""
_VERSION: Final = 1
MOST_RUNS: Final = 32_768
"""In a piece: three quarters of a million bytes at worst, a few kilobytes as a rule."""
_CACHED: Final = 64


class Place(NamedTuple):
    """Whose offsets: a topic that was made anew has another id, and other pieces."""

    topic: str
    id: str
    partition: int


class Piece(NamedTuple):
    place: Place
    first: int
    """Source offset of its first record."""
    end: int
    target: int
    target_end: int
    rows: int
    packed: bytes

    def runs(self) -> Runs:
        return _unpacked(self)

    def translate(self, offset: int) -> int:
        """Of an offset below its end."""
        runs = self.runs()
        at = int(np.searchsorted(runs.sources + runs.counts, offset, side="right"))
        return int(runs.targets[at]) + max(0, offset - int(runs.sources[at]))


@lru_cache(maxsize=_CACHED)
def _unpacked(piece: Piece) -> Runs:
    skipped, counts, foreign = np.frombuffer(zlib.decompress(piece.packed), "<i8").reshape(3, -1)
    behind = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)[:-1]))
    return Runs(piece.first + np.cumsum(skipped) + behind, piece.target + np.cumsum(foreign) + behind, counts)


def pieces_of(place: Place, runs: Runs) -> Iterator[Piece]:
    for at in range(0, len(runs.counts), MOST_RUNS):
        yield _piece(place, Runs(*(column[at : at + MOST_RUNS] for column in runs)))


def _piece(place: Place, runs: Runs) -> Piece:
    """Gaps and lengths: of what is regular all are the same, and compress to next to nothing."""
    sources, targets, counts = runs
    skipped = np.diff(sources, prepend=sources[:1])
    skipped[1:] -= counts[:-1]
    foreign = np.diff(targets, prepend=targets[:1])
    foreign[1:] -= counts[:-1]
    packed = zlib.compress(np.stack((skipped, counts, foreign)).astype("<i8").tobytes())
    end, target_end = int(sources[-1] + counts[-1]), int(targets[-1] + counts[-1])
    return Piece(place, int(sources[0]), end, int(targets[0]), target_end, runs.rows, packed)


class Partition:
    """The pieces of one, in order."""

    def __init__(self) -> None:
        self._by_first: dict[int, Piece] = {}
        self._ordered: list[Piece] | None = None

    def put(self, first: int, piece: Piece | None) -> None:
        if piece is None:
            self._by_first.pop(first, None)
        else:
            self._by_first[first] = piece
        self._ordered = None

    @property
    def pieces(self) -> list[Piece]:
        """Without those that another one has in it: whoever merged died before he took them away."""
        if self._ordered is None:
            found: list[Piece] = []
            for _, piece in sorted(self._by_first.items()):
                if not found or piece.end > found[-1].end:
                    found.append(piece)
            self._ordered = found
        return self._ordered

    @property
    def superseded(self) -> list[int]:
        kept = {piece.first for piece in self.pieces}
        return [first for first in self._by_first if first not in kept]

    def translate(self, offset: int) -> int:
        """Of an offset that is mirrored. Behind the last record there is only what comes next."""
        pieces = self.pieces
        at = bisect_right(pieces, offset, key=lambda piece: piece.end)
        if at < len(pieces):
            return pieces[at].translate(offset)
        return pieces[-1].target_end if pieces else 0


class Translation:
    """All that the topic says."""

    def __init__(self) -> None:
        self.partitions: dict[Place, Partition] = {}
        self.given: frozenset[AclRule] = frozenset()
        """Rights that the mirror has given on the target: they are kept in this topic too."""

    def put(self, key: bytes | None, value: bytes | None) -> None:
        if key == acls.KEY:
            self.given = acls.given_of(value)
            return
        place, first = decode_key(key or b"")
        piece = None if value is None else decode_piece(place, first, value)
        self.partitions.setdefault(place, Partition()).put(first, piece)

    def translate(self, place: Place, offset: int) -> int:
        partition = self.partitions.get(place)
        return 0 if partition is None else partition.translate(offset)


# --- as bytes -------------------------------------------------------------------------------------------


def record_of(piece: Piece, now_ms: int) -> NewRecord:
    head = _HEAD.pack(_VERSION, piece.end, piece.target, piece.target_end, piece.rows)
    return NewRecord(head + piece.packed, encode_key(piece.place, piece.first), now_ms)


def encode_key(place: Place, first: int) -> bytes:
    return json.dumps([*place, first], separators=(",", ":")).encode()


def decode_key(key: bytes) -> tuple[Place, int]:
    try:
        topic, topic_id, partition, first = json.loads(key)
    except (ValueError, TypeError) as error:
        raise MirrorRefused(f"the topic of translations holds a key that cannot be read: {error!r}") from None
    return Place(topic, topic_id, partition), first


def decode_piece(place: Place, first: int, value: bytes) -> Piece:
    version = value[0] if value else 0
    if version != _VERSION or len(value) < _HEAD.size:
        raise MirrorRefused(
            f"the topic of translations holds a piece of version {version}, and {_VERSION} is known here: "
            "use the Headrace that wrote it, or a newer one"
        )
    _, end, target, target_end, rows = _HEAD.unpack_from(value)
    return Piece(place, first, end, target, target_end, rows, value[_HEAD.size :])


# --- merging --------------------------------------------------------------------------------------------


class Merge(NamedTuple):
    """What takes the place of pieces: written first, then the others are removed."""

    merged: list[Piece]
    removed: list[int]


def merge(place: Place, partition: Partition, *, least: int, target_start: int) -> Merge | None:
    """None while there are fewer than `least` small pieces one behind the other at the end.

    Large ones are left as they are. What lies wholly below the start of the target's log, which nobody can
    read any more, is removed; the last piece stays, since it says where the next record will be."""
    pieces = partition.pieces
    gone = [piece.first for piece in pieces[:-1] if piece.target_end <= target_start]
    kept = [piece for piece in pieces if piece.first not in set(gone)]
    small: list[Piece] = []
    for piece in reversed(kept):
        if len(piece.runs().counts) > MOST_RUNS // 2:
            break
        small.insert(0, piece)
    if len(small) < least:
        return None
    merged = list(pieces_of(place, joined(piece.runs() for piece in small)))
    firsts = {piece.first for piece in merged}
    removed = [*gone, *partition.superseded, *(each.first for each in small if each.first not in firsts)]
    return Merge(merged, removed)
