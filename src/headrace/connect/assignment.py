"""Which worker runs which connector: evenly, and with as little moved as that takes.

A connector that its worker is to give up goes to nobody in the same round. Its worker stops it and joins
again, and then another one gets it: so no connector is run twice by workers that live, and those that are not
moved are not disturbed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from typing import NamedTuple


class Assignment(NamedTuple):
    given: dict[str, list[str]]
    """To each member, what it is to run from now on."""
    revoked: frozenset[str]
    """What members are to stop first: another round follows."""


def assign(owned: Mapping[str, Collection[str]], connectors: Collection[str]) -> Assignment:
    """`owned` has every member with what it runs now, as far as it says."""
    members = sorted(owned)
    assert members, "whoever assigns is a member"
    kept = _kept(owned, connectors)
    most, larger = _shares(len(connectors), len(members))
    revoked: set[str] = set()
    # Who has most keeps a larger share: that moves least.
    for rank, member in enumerate(sorted(members, key=lambda each: (-len(kept[each]), each))):
        share = most + (rank < larger)
        surplus = kept[member][share:]
        revoked.update(surplus)
        del kept[member][share:]
    free = sorted(set(connectors) - revoked - {name for names in kept.values() for name in names})
    for name in free:
        least = min(members, key=lambda each: (len(kept[each]), each))
        kept[least].append(name)
    return Assignment({member: sorted(names) for member, names in kept.items()}, frozenset(revoked))


def _kept(owned: Mapping[str, Collection[str]], connectors: Collection[str]) -> dict[str, list[str]]:
    """Of a connector that two claim, the second has not noticed yet that it lost it."""
    known: Set[str] = set(connectors)
    taken: set[str] = set()
    kept: dict[str, list[str]] = {}
    for member in sorted(owned):
        kept[member] = sorted(name for name in owned[member] if name in known and name not in taken)
        taken.update(kept[member])
    return kept


def _shares(connectors: int, members: int) -> tuple[int, int]:
    """What everybody gets, and how many get one more."""
    return connectors // members, connectors % members
