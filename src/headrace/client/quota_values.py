"""The quotas that there are, and their values as people write them."""

from __future__ import annotations

import re
from typing import Final

BYTE_RATES: Final = ("producer_byte_rate", "consumer_byte_rate")
OTHERS: Final = ("request_percentage", "controller_mutation_rate", "connection_creation_rate")
QUOTAS: Final = (*BYTE_RATES, *OTHERS)

_RATE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kMG]?)i?B?(?:/s)?", re.ASCII)
_FACTORS: Final = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}


def bytes_a_second(text: str) -> int:
    """500000, 10MB, 1.5GB/s. Raises ValueError."""
    match = _RATE.fullmatch(text.strip())
    rate = round(float(match[1]) * _FACTORS[match[2]]) if match else 0
    if rate < 1:
        raise ValueError(f"{text!r} is not a rate; write for instance 10MB")
    return rate


def quota_value(name: str, text: str) -> float:
    """Raises ValueError, with a sentence."""
    if name in BYTE_RATES:
        return float(bytes_a_second(text))
    if name not in OTHERS:
        raise ValueError(f"{name!r} is not a quota; there are {', '.join(QUOTAS)}")
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(f"{name}={text}: a quota is a number above 0")
    return value


def number_of(value: float) -> int | float:
    """Without a fraction where there is none."""
    return int(value) if value.is_integer() else value
