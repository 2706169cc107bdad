"""A treemap: areas as large as their values, as near to squares as rows of them can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Tile(NamedTuple):
    at: int
    """Of the value that it stands for."""
    x: float
    y: float
    width: float
    height: float


def squarified(values: Sequence[float], width: float, height: float) -> list[Tile]:
    """`values` are above zero, the largest first. (Bruls, Huizing and van Wijk, 2000.)"""
    whole = sum(values)
    if whole <= 0 or width <= 0 or height <= 0:
        return []
    scale = width * height / whole
    tiles: list[Tile] = []
    x = y = 0.0
    at = 0
    while at < len(values):
        side = min(width - x, height - y)
        end = at + 1
        while end < len(values) and _worst(values[at : end + 1], side, scale) <= _worst(
            values[at:end], side, scale
        ):
            end += 1
        thickness = sum(values[at:end]) * scale / side if side > 0 else 0.0
        is_tall = width - x >= height - y
        place = y if is_tall else x
        for index in range(at, end):
            length = values[index] * scale / thickness if thickness > 0 else 0.0
            if is_tall:
                tiles.append(Tile(index, x, place, thickness, length))
            else:
                tiles.append(Tile(index, place, y, length, thickness))
            place += length
        if is_tall:
            x += thickness
        else:
            y += thickness
        at = end
    return tiles


def _worst(row: Sequence[float], side: float, scale: float) -> float:
    """The largest ratio of a side to the other in a row along `side`."""
    area = sum(row) * scale
    if area <= 0 or side <= 0:
        return float("inf")
    return max(side * side * row[0] * scale / area**2, area**2 / (side * side * row[-1] * scale))
