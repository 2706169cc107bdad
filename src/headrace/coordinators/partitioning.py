"""Which partition of an internal topic decides about a key. Every client's tools must come to the same."""

from __future__ import annotations

from functools import lru_cache
from struct import unpack

REMEMBERED_KEYS = 8_192


def partition_for(key: str, partitions: int) -> int:
    """Java's String.hashCode without its sign bit, as Kafka takes it."""
    return (java_hash(key) & 0x7FFFFFFF) % partitions


@lru_cache(REMEMBERED_KEYS)
def java_hash(text: str) -> int:
    """Over UTF-16 code units, in 32 bits, as an unsigned number."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for unit in unpack(f">{len(encoded) // 2}H", encoded):
        result = (31 * result + unit) & 0xFFFFFFFF
    return result
