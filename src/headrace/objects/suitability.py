"""Whether a bucket can hold history: the races, and each other thing that tiered storage asks of a store.

A finding is what is wrong, and what to do about it. Everything happens below one prefix that nobody else has,
and is deleted again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from headrace.core.ports_objects import (
    ABSENT,
    Done,
    Found,
    Listing,
    LostRace,
    ObjectStore,
    OutcomeUnknown,
    Part,
    Refused,
)
from headrace.core.store_refusals import RIGHTS, cure_of
from headrace.objects.race import IF_MATCH, IF_NONE_MATCH, RaceRound, run_races

FOLDER: Final = "headrace-tier-check"
_CONTENT: Final = b"0123456789"
_OTHER_STORE: Final = (
    "two brokers could both believe that they wrote the manifest, and history would be lost: use a store that"
    " keeps conditional writes, or a later version of this one"
)
_REACH: Final = "check the URL, --endpoint, --region and the network, or give it longer with --deadline"


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    cure: str


@dataclass(slots=True)
class Suitability:
    races: list[RaceRound] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_fit(self) -> bool:
        return not self.findings


def examine(
    store: ObjectStore, nonce: str, *, deadline_seconds: float, writers: int, rounds: int
) -> Suitability:
    """`nonce` makes the prefix one that nobody else has."""
    found = Suitability()
    prefix = f"{FOLDER}/{nonce}/"
    try:
        found.findings = list(_basics(store, f"{prefix}basics", deadline_seconds))
        if not found.findings:
            found.races = run_races(
                store, prefix, deadline_seconds=deadline_seconds, writers=writers, rounds=rounds
            )
            found.findings = list(_of_races(found.races))
            found.findings += _listed(store, prefix, found.races, deadline_seconds)
    finally:
        left = _delete_all(store, prefix, deadline_seconds)
    if left is not None and not found.findings:
        found.findings.append(left)
    return found


def _basics(store: ObjectStore, key: str, deadline_seconds: float) -> Iterator[Finding]:
    """What needs no race. The first thing that fails is the one to mend."""
    written = store.put(key, _CONTENT, deadline_seconds=deadline_seconds)
    if not isinstance(written, Done):
        yield _failed("cannot be written to", written)
        return
    read = store.get(key, deadline_seconds=deadline_seconds)
    if not isinstance(read, Found) or read.data != _CONTENT:
        yield _failed("does not give back what was written a moment ago", read)
        return
    if not read.tag:
        yield Finding(
            "the store tells no ETag of an object, so that If-Match has nothing to compare", _OTHER_STORE
        )
        return
    part = store.get_range(key, 2, 3, deadline_seconds=deadline_seconds)
    if not isinstance(part, Part) or bytes(part.data) != _CONTENT[2:5]:
        yield _failed("does not give a range of an object", part)
        return
    changed = store.put(key, _CONTENT * 2, deadline_seconds=deadline_seconds)
    if not isinstance(changed, Done):
        yield _failed("cannot be written to", changed)
        return
    stale = store.put_if(key, b"stale", read.tag, deadline_seconds=deadline_seconds)
    if isinstance(stale, Done):
        yield _ignored(IF_MATCH, "a write was let through whose condition did not hold")
    elif not isinstance(stale, LostRace):
        yield _failed(f"does not answer a write with {IF_MATCH}", stale)
    second = store.put_if(key, b"second", ABSENT, deadline_seconds=deadline_seconds)
    if isinstance(second, Done):
        yield _ignored(IF_NONE_MATCH, "a write was let through though there was an object")
    elif not isinstance(second, LostRace):
        yield _failed(f"does not answer a write with {IF_NONE_MATCH}", second)


def _of_races(races: list[RaceRound]) -> Iterator[Finding]:
    for condition in (IF_NONE_MATCH, IF_MATCH):
        several = [each.winners for each in races if each.condition == condition and each.winners > 1]
        if several:
            counts = ", ".join(map(str, several))
            yield _ignored(condition, f"of writers that wrote at once, {counts} were told that they had won")
        for each in races:
            if each.condition == condition and not each.is_won_by_one and each.winners <= 1:
                yield _odd_race(each)
                break


def _odd_race(race: RaceRound) -> Finding:
    if race.refusal:
        return Finding(f"a race with {race.condition} was not answered: {race.refusal}", _REACH)
    if race.winners == 0:
        return Finding(f"nobody won a race with {race.condition}", _OTHER_STORE)
    return Finding(
        f"{race.condition}: a writer was told that it had won, and another one's object is there",
        _OTHER_STORE,
    )


def _listed(
    store: ObjectStore, prefix: str, races: list[RaceRound], deadline_seconds: float
) -> Iterator[Finding]:
    listing = store.list(prefix, deadline_seconds=deadline_seconds)
    if not isinstance(listing, Listing):
        yield _failed("does not list its objects", listing)
    elif races and not listing.objects:
        yield Finding("the store lists nothing where objects are", RIGHTS)


def _delete_all(store: ObjectStore, prefix: str, deadline_seconds: float) -> Finding | None:
    listing = store.list(prefix, deadline_seconds=deadline_seconds)
    if not isinstance(listing, Listing):
        return _failed("does not list its objects", listing)
    for each in listing.objects:
        outcome = store.delete(each.key, deadline_seconds=deadline_seconds)
        if not isinstance(outcome, Done):
            return _failed(f"does not delete {each.key}, which this check wrote", outcome)
    return None


def _ignored(condition: str, how: str) -> Finding:
    return Finding(f"the store ignores {condition}: {how}", _OTHER_STORE)


def _failed(what: str, outcome: object) -> Finding:
    """What it says is the store's own words, where it has any."""
    if isinstance(outcome, Refused):
        return Finding(f"the store {what}: {outcome.reason}", cure_of(outcome.reason) or RIGHTS)
    if isinstance(outcome, OutcomeUnknown):
        return Finding(f"the store {what}: {outcome.reason}", _REACH)
    return Finding(f"the store {what}", _OTHER_STORE)
