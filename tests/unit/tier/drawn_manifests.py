"""Manifests that could be, drawn by Hypothesis."""

from __future__ import annotations

from uuid import UUID

from hypothesis import strategies as st

from headrace.tier.manifest import Manifest, Origin, Removed
from headrace.tier.names import ObjectName, TieredPartition
from headrace.tier.segments import EpochStart, PageRef, RemoteSegment, Stored, page_of

PARTITION = TieredPartition(UUID(int=77), 3)
WRITER = UUID(int=5)
_CHECKSUMS = st.integers(0, 2**32 - 1)


def segment(
    base: int, following: int, *, epoch: int = 1, attempt: int = 0, time: int = 1000
) -> RemoteSegment:
    """A plain one, of one epoch."""
    name = ObjectName(base, epoch, f"{attempt or base:032x}")
    epochs = (EpochStart(epoch, base),)
    return RemoteSegment(name, following, Stored((following - base) * 10, 7), Stored(64, 8), time, epochs)


@st.composite
def chains(draw: st.DrawFn, most: int = 8) -> list[RemoteSegment]:
    """Segments that follow each other, each of one epoch or several."""
    offset = draw(st.integers(0, 2**40))
    epoch = draw(st.integers(0, 5))
    found = []
    for number in range(draw(st.integers(0, most))):
        length = draw(st.integers(1, 1000))
        epochs = [EpochStart(epoch := epoch + draw(st.integers(0, 2)), offset)]
        if length > 1 and draw(st.booleans()):
            epochs.append(EpochStart(epoch := epoch + 1, offset + draw(st.integers(1, length - 1))))
        found.append(
            RemoteSegment(
                ObjectName(offset, epoch + draw(st.integers(0, 2)), f"{number:032x}"),
                offset + length,
                Stored(draw(st.integers(0, 2**40)), draw(_CHECKSUMS)),
                Stored(draw(st.integers(0, 2**30)), draw(_CHECKSUMS)),
                draw(st.integers(-1, 2**42)),
                tuple(epochs),
            )
        )
        offset += length
    return found


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    chain = draw(chains())
    first = draw(st.integers(0, len(chain)))
    last = draw(st.integers(first, len(chain)))
    start = (
        draw(st.integers(chain[0].base_offset, chain[0].next_offset - 1))
        if chain
        else draw(st.integers(0, 99))
    )
    pages: tuple[PageRef, ...] = ()
    if chain[first:last]:
        name = ObjectName(chain[first].base_offset, 40, f"{99:032x}")
        pages = (page_of(name, chain[first:last], Stored(draw(st.integers(1, 2**20)), draw(_CHECKSUMS))),)
    removed = [
        Removed(
            ObjectName(number, draw(st.integers(0, 40)), f"{1000 + number:032x}"), draw(st.integers(0, 2**42))
        )
        for number in range(draw(st.integers(0, 3)))
    ]
    return Manifest(
        PARTITION,
        draw(st.integers(40, 2**31)),
        draw(st.uuids()),
        draw(st.integers(0, 2**40)),
        start,
        tuple(chain[:first]),
        pages,
        tuple(chain[last:]),
        tuple(removed),
        draw(st.none() | st.integers(0, 2**42)),
        draw(st.none() | st.builds(Origin, st.uuids(), st.integers(0, 2**41))),
    )
