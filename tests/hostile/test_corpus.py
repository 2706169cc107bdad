"""Everything that fuzzing found once, and neighbours of it, in every build and without the fuzzer."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest

from headrace.core.errors import HeadraceError
from tests.hostile.fuzz import corpus
from tests.hostile.fuzz.lessons import LESSONS
from tests.hostile.fuzz.targets import TARGETS, run

_NEIGHBOURS = 1500
_NUMBERS = (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0")


def _mutated(random: Random, data: bytes) -> bytes:
    """One to four small changes, of those that find most."""
    found = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at = random.randint(0, len(found))
        kind = random.randrange(5)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            found[at : at + random.randint(1, 8)] = b""
        elif kind == 2:
            found[at:at] = random.randbytes(random.randint(1, 8))
        elif kind == 3:
            found[at : at + 4] = random.choice(
                (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0")
            )
        else:
            found[at : at + 5] = b"\xff\xff\xff\xff\x0f"
    return bytes(found)


@pytest.mark.parametrize("target", TARGETS)
def test_what_was_found_once_stays_mended(target: str) -> None:
    for data in corpus.kept(target):
        run(target, data)


@pytest.mark.parametrize("name", LESSONS)
def test_what_others_were_attacked_with_gets_nowhere(name: str) -> None:
    """Refused at once: with little memory, and with an error of ours."""
    target, data, is_refused = LESSONS[name]
    run(target, data)  # what is imported or kept at the first time; raises if somebody gets in
    tracemalloc.start()
    try:
        if is_refused:
            with pytest.raises(HeadraceError):
                TARGETS[target](data)
        else:
            run(target, data)
        assert tracemalloc.get_traced_memory()[1] < 3 * 1024 * 1024 + 4 * len(data)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("target", TARGETS)
def test_neighbours_of_what_is_valid_are_refused_or_served(target: str) -> None:
    random = Random(2026)
    known = corpus.first(target) or [b"", bytes(16)]
    for _ in range(_NEIGHBOURS):
        data = _mutated(random, random.choice(known))
        try:
            run(target, data)
        except Exception as error:
            raise AssertionError(f"{target}: {data.hex()}") from error
