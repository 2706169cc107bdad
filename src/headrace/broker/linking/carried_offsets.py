"""Which offsets of the source's groups are still to be committed here, and which belong to the group by now.
Pure.

A group that has read on here is set back only if it moves over there. A leader knows what it has committed
itself. One that has just begun to lead does not, and asks the coordinator: an offset with a leader epoch was
committed by a member, since links and tools name none, and one that is further than the source's was not
committed by a link either.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from headrace.replication.linking import LinkedPartition

NO_LEADER_EPOCH: Final = -1


class Place(NamedTuple):
    """Of a group in a partition, as the source tells it."""

    there: int
    here: int
    """The same, or the end of the copy if that comes first."""
    metadata: str = ""


class CommittedHere(NamedTuple):
    offset: int
    leader_epoch: int


class CarriedOffsets:
    def __init__(self) -> None:
        self._seen: dict[LinkedPartition, dict[str, Place | int]] = {}
        """By partition, of this leader epoch, and group: what was committed, or, where the group has read on
        here, only where it was at the source. In another epoch it is another partition, since somebody else
        may have led in between."""

    def keep_only(self, copied: Collection[LinkedPartition]) -> None:
        known = set(copied)
        self._seen = {linked: groups for linked, groups in self._seen.items() if linked in known}

    def moved(self, group: str, places: Mapping[LinkedPartition, Place]) -> dict[LinkedPartition, Place]:
        """Those that are not dealt with."""
        return {linked: place for linked, place in places.items() if self._has_moved(group, linked, place)}

    def _has_moved(self, group: str, linked: LinkedPartition, place: Place) -> bool:
        seen = self._seen.get(linked, {}).get(group)
        if isinstance(seen, Place):
            return (seen.there, seen.here) != (place.there, place.here)
        return seen != place.there

    def are_new(self, group: str, partitions: Collection[LinkedPartition]) -> list[LinkedPartition]:
        """Those of which this leader does not know whether the group has read on here."""
        return [linked for linked in partitions if group not in self._seen.get(linked, {})]

    def is_left_alone(
        self, group: str, linked: LinkedPartition, place: Place, found: CommittedHere | None
    ) -> bool:
        """Whether what was found here stays, until the group moves at the source."""
        if found is None or (found.leader_epoch == NO_LEADER_EPOCH and found.offset <= place.here):
            return False
        self._seen.setdefault(linked, {})[group] = place.there
        return True

    def on_committed(self, group: str, linked: LinkedPartition, place: Place) -> None:
        self._seen.setdefault(linked, {})[group] = place
