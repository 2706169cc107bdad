"""Damage to files: what a disk, a file system or a hand can do to one, by the names of what it did.

The same ways serve the simulation and real processes: they take bytes and give bytes.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

ZEROED_BYTES: Final = 512

MISSING: Final = "missing"
CUT: Final = "cut short"
EMPTIED: Final = "emptied"
ZEROED: Final = "zeroed in part"
FLIPPED: Final = "bit flipped"
ALONE: Final = (MISSING, CUT, EMPTIED, ZEROED, FLIPPED)
"""What can happen to a file that stands alone."""
SWAPPED: Final = "swapped with another partition's"
OLDER: Final = "an older copy"


def harm(data: bytes, way: str, random: Random) -> bytes | None:
    """The bytes that are left; None if the file itself is gone. An empty file can only go."""
    if way == MISSING or not data:
        return None
    if way == EMPTIED:
        return b""
    if way == CUT:
        return data[: random.randrange(len(data))]
    harmed = bytearray(data)
    if way == ZEROED:
        at = random.randrange(len(data))
        size = min(ZEROED_BYTES, len(data) - at)
        harmed[at : at + size] = bytes(size)
    elif way == FLIPPED:
        harmed[random.randrange(len(data))] ^= 1 << random.randrange(8)
    else:
        raise ValueError(f"nobody knows how a file is {way}")
    return bytes(harmed)


def flip_bit(path: Path, at: int) -> None:
    """Another byte than was there: a byte that is written over may be the same, as of a random topic id."""
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))
