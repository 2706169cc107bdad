"""What differs between two texts, line by line, with a little of what is around."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

AROUND: Final = 3
MOST_COMPARED: Final = 600
"""Lines on each side between the first and the last that differ: to compare takes time by their square. Of
more it is only said that they went and came."""
MOST_SHOWN: Final = 2000


class Line(NamedTuple):
    sign: str
    """`+`, `-`, a blank, or `…` for lines that are left out."""
    text: str


def differences(before: Sequence[str], after: Sequence[str]) -> list[Line]:
    """Empty where both are the same."""
    if list(before) == list(after):
        return []
    first = _same(before, after)
    last = _same(before[first:][::-1], after[first:][::-1])
    old, new = before[first : len(before) - last], after[first : len(after) - last]
    lines = _around(before[:first], is_before=True)
    if max(len(old), len(new)) > MOST_COMPARED:
        lines += [*_signed("-", old), *_signed("+", new)]
    else:
        for operation, i1, i2, j1, j2 in SequenceMatcher(None, old, new).get_opcodes():
            if operation == "equal":
                lines += _between(old[i1:i2])
            else:
                lines += [*_signed("-", old[i1:i2]), *_signed("+", new[j1:j2])]
    lines += _around(before[len(before) - last :], is_before=False)
    more = len(lines) - MOST_SHOWN
    return lines if more <= 0 else [*lines[:MOST_SHOWN], Line("…", f"{more:,} more lines")]


def _same(before: Sequence[str], after: Sequence[str]) -> int:
    """How many lines at the beginning are the same."""
    count = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        count += 1
    return count


def _signed(sign: str, lines: Sequence[str]) -> list[Line]:
    return [Line(sign, line) for line in lines]


def _around(lines: Sequence[str], *, is_before: bool) -> list[Line]:
    kept = lines[-AROUND:] if is_before else lines[:AROUND]
    rest = _left_out(len(lines) - len(kept))
    return [*rest, *_signed(" ", kept)] if is_before else [*_signed(" ", kept), *rest]


def _between(lines: Sequence[str]) -> list[Line]:
    if len(lines) <= 2 * AROUND + 1:
        return _signed(" ", lines)
    left = _left_out(len(lines) - 2 * AROUND)
    return [*_signed(" ", lines[:AROUND]), *left, *_signed(" ", lines[-AROUND:])]


def _left_out(count: int) -> list[Line]:
    return [Line("…", f"{count:,} line{'' if count == 1 else 's'} the same")] if count else []
