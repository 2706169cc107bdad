"""Changes of a manifest: each keeps that it has no gap, no overlap, and names what it gives up."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.tier.manifest import Manifest, Removed, first_manifest
from headrace.tier.manifest_format import encode, encode_page, stored
from headrace.tier.names import ObjectName
from headrace.tier.segments import EpochStart, Misfit, RemoteSegment, page_of
from tests.unit.tier.drawn_manifests import PARTITION, WRITER, chains, segment

NOW = 1_700_000_000_000
EMPTY = first_manifest(PARTITION, 5, WRITER, 100)


def of(chain: list[RemoteSegment]) -> Manifest:
    empty = first_manifest(PARTITION, 99, WRITER, chain[0].base_offset)
    for each in chain:
        empty = empty.with_segment(each)
    return empty


def folded(manifest: Manifest, count: int) -> Manifest:
    listed = manifest.segments[:count]
    name = ObjectName(listed[0].base_offset, 99, "f" * 32)
    return manifest.folded(page_of(name, listed, stored(encode_page(PARTITION, listed))))


def test_segments_follow_each_other() -> None:
    one = EMPTY.with_segment(segment(100, 200))
    assert (one.start, one.next_offset, one.size) == (100, 200, 1000)
    two = one.with_segment(segment(200, 300, epoch=3))
    assert two.epochs == (EpochStart(1, 100), EpochStart(3, 200))
    assert EMPTY.with_segment(segment(90, 200)).start == 100, "the batch of the start begins before it"


@pytest.mark.parametrize(
    ("base", "following", "epoch"),
    [
        (301, 400, 3),  # a gap
        (299, 400, 3),  # an overlap
        (100, 200, 3),  # once more
        (300, 300, 3),  # nothing
        (300, 400, 2),  # an epoch that was over
        (300, 400, 6),  # an epoch that this writer does not know
    ],
)
def test_what_does_not_follow_is_refused(base: int, following: int, epoch: int) -> None:
    manifest = EMPTY.with_segment(segment(100, 300, epoch=3))
    with pytest.raises(Misfit):
        manifest.with_segment(segment(base, following, epoch=epoch, attempt=9))


@pytest.mark.parametrize(("base", "following"), [(101, 200), (0, 100), (0, 50)])
def test_the_first_segment_holds_the_start(base: int, following: int) -> None:
    with pytest.raises(Misfit):
        EMPTY.with_segment(segment(base, following))


def test_a_name_is_there_once() -> None:
    with pytest.raises(Misfit, match="named twice"):
        replace(EMPTY.with_segment(segment(100, 200)), removed=(Removed(segment(100, 200).name, 1),)).check()


def test_the_start_moves_and_names_what_went() -> None:
    manifest = of([segment(0, 10), segment(10, 20), segment(20, 30)])
    within = manifest.with_start(5, NOW)
    assert (within.start, within.removed, len(within.segments)) == (5, (), 3)
    moved = within.with_start(20, NOW)
    moved.check()
    assert [each.name.base_offset for each in moved.removed] == [0, 10]
    assert moved.with_start(3, NOW) is moved, "it never moves back"
    beyond = moved.with_start(100, NOW)
    beyond.check()
    assert (beyond.start, beyond.next_offset, beyond.size) == (100, 100, 0)
    assert len(beyond.removed) == 3
    assert beyond.without_removed([moved.removed[0].name]).removed == beyond.removed[1:]


@given(chains(most=5), st.data())
def test_every_change_leaves_a_whole_manifest(chain: list[RemoteSegment], data: st.DataObject) -> None:
    if not chain:
        return
    manifest = of(chain)
    names = set(manifest.named)
    pages: dict[ObjectName, tuple[RemoteSegment, ...]] = {}
    for _ in range(data.draw(st.integers(1, 6))):
        what = data.draw(st.sampled_from(["fold", "start"]))
        if what == "fold" and manifest.segments:
            listed = manifest.segments[: data.draw(st.integers(1, len(manifest.segments)))]
            name = ObjectName(listed[0].base_offset, 99, f"{2**64 + len(pages):032x}")
            pages[name] = listed
            manifest = manifest.folded(page_of(name, listed, stored(encode_page(PARTITION, listed))))
        else:
            offset = data.draw(st.integers(manifest.start, manifest.next_offset))
            while manifest.pages and offset > manifest.pages[0].base_offset:
                if offset > manifest.start:
                    with pytest.raises(Misfit):
                        manifest.with_start(offset, NOW)
                manifest = manifest.unfolded(pages[manifest.pages[0].name], NOW)
            manifest = manifest.with_start(offset, NOW)
        manifest.check()
        assert manifest.next_offset == chain[-1].next_offset
        listed_now = {each.name for page in manifest.pages for each in pages[page.name]}
        of_segments = {*manifest.named, *listed_now, *(each.name for each in manifest.removed)} - set(pages)
        assert of_segments == names, "an object is named, listed or removed, and never forgotten"
        assert set(pages) == {each.name for each in manifest.pages} | {
            each.name for each in manifest.removed if each.name in pages
        }


def test_a_page_keeps_the_manifest_small_and_its_sums_right() -> None:
    manifest = of([segment(n * 10, n * 10 + 10, epoch=1 + n // 40, attempt=n + 1) for n in range(100)])
    small = folded(manifest, 80)
    assert (small.size, small.epochs, small.next_offset) == (manifest.size, manifest.epochs, 1000)
    assert len(encode(small)) < len(encode(manifest)) / 3
    with pytest.raises(Misfit):
        small.folded(small.pages[0])


def test_each_write_is_unlike_every_other() -> None:
    again = EMPTY.following(6, UUID(int=9))
    assert (again.epoch, again.change) == (6, 2)
    assert not again.is_by(EMPTY)
    assert again.is_by(replace(again))
    assert encode(again) != encode(EMPTY.following(6, UUID(int=10)))
