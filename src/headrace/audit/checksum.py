"""What two parties must agree on to have seen the same records: a count and a sum of hashes.

The hash of a record has two lanes of 64 bits:

    a = xxhash64(key is null, key, value)
    b = xxhash64(1, key is null, key, value) xor timestamp in ms

and the checksum of many records is the sum of each lane modulo 2^64, written as 32 hexadecimal digits. A sum
does not depend on order, and unlike an exclusive or it sees a record that is there twice.

`xxhash64` is Spark SQL's function of that name: each column is hashed with XXH64, with the hash of the
columns before it for a seed, and the first with 42; a null leaves the seed as it is. So Spark computes this
in compiled code, and a producer with the `xxhash` package, in a quarter of the time that hashlib's fastest
digest takes. The flag in front keeps a key without a value apart from a value without a key; the one in lane
b makes the lanes independent. Headers are not covered: clients do not give them back when a record is
acknowledged.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from headrace.core.errors import HeadraceError

MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
SPARK_SEED: Final = 42


class HashMissing(HeadraceError):
    """The package that hashes is an extra, for producers only."""


try:
    from xxhash import xxh64_intdigest
except ImportError as error:
    raise HashMissing("the audit of producers needs xxhash: pip install 'headrace[audit]'") from error

_hash: Final[Callable[[bytes, int], int]] = xxh64_intdigest


def _seeds(lane: int) -> tuple[int, int]:
    """The seeds of a lane: for a record with a key, and for one without."""
    return _hash(struct.pack("<i", 0), lane), _hash(struct.pack("<i", 1), lane)


_KEYED_A, _KEYLESS_A = _seeds(SPARK_SEED)
_KEYED_B, _KEYLESS_B = _seeds(_hash(struct.pack("<i", 1), SPARK_SEED))


def record_hash(key: bytes | None, value: bytes | None, timestamp_ms: int) -> tuple[int, int]:
    """Both lanes, unsigned."""
    if key is None:
        a, b = _KEYLESS_A, _KEYLESS_B
    else:
        a, b = _hash(key, _KEYED_A), _hash(key, _KEYED_B)
    if value is not None:
        a, b = _hash(value, a), _hash(value, b)
    return a, (b ^ timestamp_ms) & MASK
