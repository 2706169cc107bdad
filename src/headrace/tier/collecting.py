"""Garbage: objects that a manifest gave up, and objects that none ever named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headrace.core.ports_objects import Done, Listing, ObjectEntry
from headrace.tier.calls import Delete, List, Steps, reason_of
from headrace.tier.fork_register import Hold, held, holds, unregister
from headrace.tier.jobs import Basis, Place
from headrace.tier.knowledge import Failed, Known, Overtaken, Result, Seen, Unusable, Written
from headrace.tier.names import PAGE, ObjectName
from headrace.tier.retaining import ListedPage
from headrace.tier.writing import read, read_page_of


@dataclass(frozen=True, slots=True)
class StartJob:
    """Rule 16: move the start in the manifest. What lies before it is named as removed, and goes later."""

    basis: Basis
    start: int
    page: ListedPage | None
    now_ms: int

    def run(self) -> Steps[Result]:
        place, manifest = self.basis.place, self.basis.next_manifest()
        known = self.page
        while manifest.pages and self.start > manifest.pages[0].base_offset:
            page = manifest.pages[0]
            if known is not None and known[0] == page.name:
                listed = known[1]
            else:
                found = yield from read_page_of(place.folder, place.partition, self.basis.known, page)
                if not isinstance(found, tuple):
                    return found
                listed = found
            manifest = manifest.unfolded(listed, self.now_ms)
        changed = manifest.with_start(self.start, self.now_ms)
        if not place.safeguards.manifest_before_objects:
            yield from _delete(place, [each.name for each in changed.removed])
        return (yield from self.basis.commit(changed))


@dataclass(frozen=True, slots=True)
class EmptyJob:
    """The topic's history is given up, and its local log stays: it begins at `start` from now on."""

    basis: Basis
    start: int
    now_ms: int

    def run(self) -> Steps[Result]:
        place, manifest = self.basis.place, self.basis.next_manifest()
        while manifest.pages:
            page, known = manifest.pages[0], self.basis.known
            found = yield from read_page_of(place.folder, place.partition, known, page)
            if not isinstance(found, tuple):
                return found
            manifest = manifest.unfolded(found, self.now_ms)
        return (yield from self.basis.commit(manifest.emptied(self.start, self.now_ms)))


@dataclass(frozen=True, slots=True)
class CollectJob:
    """Delete what was given up long enough ago, and then forget it. Rule 18: not what a fork names. That
    stays given up, until the fork has no more use for it."""

    basis: Basis
    names: tuple[ObjectName, ...]
    at_once: int

    def run(self) -> Steps[Result]:
        place = self.basis.place
        kept = yield from _holds(place)
        if isinstance(kept, Failed):
            return kept
        names = [each for each in self.names if not held(each, kept)][: self.at_once]
        if not names:
            return Seen(self.basis.known)
        failed = yield from _delete(place, names)
        if failed is not None:
            return failed
        return (yield from self.basis.commit(self.basis.next_manifest().without_removed(names)))


def _holds(place: Place) -> Steps[tuple[Hold, ...] | Failed]:
    if not place.safeguards.forks_hold:
        return ()
    return (yield from holds(place.folder, place.partition))


@dataclass(frozen=True, slots=True)
class SweepJob:
    """Rule 8: find what no manifest names. It is garbage if an earlier leader wrote it, or this one gave it
    up.

    It comes after a write of this leader (`is_claimed`, or it makes one): from then on no leader before it
    can name anything any more. A listing that lacks objects leaves garbage for the next time, and one that
    has too many makes us delete what is not there.
    """

    basis: Basis
    is_claimed: bool
    given_up: frozenset[ObjectName]
    now_ms: int
    garbage_age_ms: int

    def run(self) -> Steps[Result]:
        place, known = self.basis.place, self.basis.known
        if not self.is_claimed and place.safeguards.claim_before_sweep:
            claimed = yield from self.basis.commit(self.basis.next_manifest())
            if not isinstance(claimed, Written):
                return claimed
            known = claimed.known
        result: Result = Written(known) if known is not self.basis.known else Seen(known)
        named = yield from named_by(place, known)
        if not isinstance(named, set):
            return named if isinstance(result, Seen) else result
        listing = yield List(place.folder.prefix)
        if isinstance(listing, Listing):
            garbage = [
                name
                for name in _names(place, self._old(listing.objects))
                if name not in named and self._is_ours_to_judge(name)
            ]
            yield from _delete(place, garbage)
        return result

    def _old(self, objects: Iterable[ObjectEntry]) -> Iterable[ObjectEntry]:
        if not self.basis.place.safeguards.garbage_has_age:
            return objects
        newest_ms = self.now_ms - self.garbage_age_ms
        return (each for each in objects if each.modified_ms <= newest_ms)

    def _is_ours_to_judge(self, name: ObjectName) -> bool:
        if not self.basis.place.safeguards.own_or_older_garbage:
            return True
        return name.leader_epoch < self.basis.leadership.epoch or name in self.given_up


@dataclass(frozen=True, slots=True)
class PurgeJob:
    """Everything of a deleted topic: what is named, what is listed, and at last the manifest, when nothing
    else is listed any more. What arrives later is found by who looks for folders of no topic.

    Rule 18: what a fork names stays, and so do the manifest and the pages, which say what that is. A fork
    itself deletes what is in its own folder, and then its origin need not hold anything for it any more.
    """

    place: Place
    known: Known
    with_manifest: bool

    def run(self) -> Steps[Result]:
        place, manifest = self.place, self.known.manifest
        assert manifest is not None
        listing = yield List(place.folder.prefix)
        if not isinstance(listing, Listing):
            return Failed(reason_of(listing))
        itself = (place.folder.manifest, place.folder.forks)
        found = [each.key for each in listing.objects if each.key not in itself]
        named = yield from named_by(place, self.known)
        if isinstance(named, Failed | Overtaken):
            return named
        kept = yield from _holds(place)
        if isinstance(kept, Failed):
            return kept
        # A page that is gone was listed, and so was what it lists: pages go after everything else.
        names = set() if isinstance(named, Unusable) else named - {each.name for each in manifest.pages}
        stays = _kept_keys(place, names if names or not kept else None, found, kept)
        failed = yield from _delete(place, sorted(each for each in names if not held(each, kept)))
        pages = [] if kept else [key for key in found if key.endswith(PAGE)]
        for key in [key for key in found if not key.endswith(PAGE) and key not in stays] + pages:
            outcome = yield Delete(key)
            if not isinstance(outcome, Done):
                failed = Failed(f"{key}: {reason_of(outcome)}")
        if failed is not None or found or kept or not self.with_manifest:
            return failed or Seen(self.known)
        return (yield from self._end())

    def _end(self) -> Steps[Result]:
        """Nothing but the manifest is left, and what says who has forked it."""
        place, manifest = self.place, self.known.manifest
        if manifest is not None and manifest.origin is not None:
            origin = place.folder.sibling(manifest.origin.topic_id)
            failed = yield from unregister(origin, place.partition.topic_id)
            if failed is not None:
                return failed
        for key in (place.folder.forks, place.folder.manifest):
            yield Delete(key)
        return (yield from read(place.folder, place.partition))


def _kept_keys(
    place: Place, names: set[ObjectName] | None, found: Iterable[str], kept: tuple[Hold, ...]
) -> set[str]:
    """Of what is listed, what a fork may read. Without names, everything that could be it."""
    stays = set()
    for key in found if kept else ():
        name = place.folder.name_of(key)
        if name is not None and held(name, kept) and (names is None or name in names):
            stays.add(key)
    return stays


def named_by(place: Place, known: Known) -> Steps[set[ObjectName] | Failed | Overtaken | Unusable]:
    """Every object that the manifest speaks of, also by its pages."""
    manifest = known.manifest
    assert manifest is not None
    named = {*manifest.named, *(each.name for each in manifest.removed)}
    if place.safeguards.listed_in_pages:
        for page in manifest.pages:
            listed = yield from read_page_of(place.folder, place.partition, known, page)
            if not isinstance(listed, tuple):
                return listed
            named.update(each.name for each in listed)
    return named


def _names(place: Place, objects: Iterable[ObjectEntry]) -> Sequence[ObjectName]:
    """Each once, in the order of the listing."""
    found = (place.folder.name_of(each.key) for each in objects)
    return list(dict.fromkeys(name for name in found if name is not None))


def _delete(place: Place, names: Iterable[ObjectName]) -> Steps[Failed | None]:
    """Records before their indexes."""
    for name in names:
        for key in place.folder.all_of(name):
            outcome = yield Delete(key)
            if not isinstance(outcome, Done):
                return Failed(f"{key}: {reason_of(outcome)}")
    return None
