"""Durations and sizes as people write them in a configuration."""

from __future__ import annotations

import re
from typing import Final

_DURATION: Final = re.compile(
    r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?", re.ASCII
)
_UNIT_SECONDS: Final = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)(i?)B?", re.ASCII)
_POWERS: Final = {"": 0, "k": 1, "M": 2, "G": 3, "T": 4}


def seconds(text: str) -> float | None:
    """90s, 1h30m, 2d, 500ms; None where it is not a duration."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        return None
    return sum(
        float(part) * unit
        for part, unit in zip(match.groups(), _UNIT_SECONDS, strict=True)
        if part is not None
    )


def byte_count(text: str) -> int | None:
    """64MB, 1.5GiB, 4096; None where it is not a size."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    base = 1024 if match[3] else 1000
    power: int = _POWERS[match[2]]
    return round(float(match[1]) * float(base) ** power)
