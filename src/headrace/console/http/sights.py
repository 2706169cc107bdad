"""What a viewer may see of a snapshot: topics and groups by the brokers' own rules.

A page gets a snapshot from which the rest was taken away, so that no page can forget to ask.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, NamedTuple

from starlette.requests import Request

from headrace.client.health import Health
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.building import furthest, readers_of, total
from headrace.observe.history import BUCKETS, History, Track
from headrace.observe.snapshot import GroupSeen, Snapshot, TopicSeen, Totals
from headrace.observe.tier_seen import TierSeen
from headrace.registry.rights import topic_of
from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType, operations_of
from headrace.security.rights import Rights

SCOPE: Final = "headrace.console.sight"


class Sight:
    """Of one viewer. Without rights, where no authorizer is on, everything is seen."""

    def __init__(self, rights: Rights | None, tag: str = "") -> None:
        self._rights = rights
        self.tag = tag
        """Differs between viewers that see different things."""

    @classmethod
    def unlimited(cls) -> Sight:
        return cls(None)

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        return self._rights is None or self._rights.allows_silently(operation, kind, name)

    @property
    def principal(self) -> str:
        """Empty where it makes no difference who looks."""
        return "" if self._rights is None else self._rights.principal

    def operations(self, kind: ResourceType, name: str) -> list[Operation]:
        """Those that this viewer may, of a viewer that has a principal."""
        return [each for each in operations_of(kind) if self.may(each, kind, name)]

    def may_read(self, topic: str) -> bool:
        return self.may(Operation.READ, ResourceType.TOPIC, topic)

    def may_see_settings(self) -> bool:
        """Of the cluster: what other services are set to is shown to nobody else."""
        return self.may(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_read_subject(self, subject: str) -> bool:
        """As the registry decides it for its own users."""
        topic = topic_of(subject)
        return self.may_read(topic) or self.may(Operation.DESCRIBE, ResourceType.TOPIC, topic)

    def of(self, seen: Snapshot) -> Snapshot:
        if self._rights is None:
            return seen
        kept = _LIMITED.get(self.tag)
        # Newer rules make other rights: what was made by the old ones does not count.
        if kept is not None and kept.seen is seen and kept.rights is self._rights:
            return kept.limited
        limited = self._limited(seen)
        _LIMITED[self.tag] = _Kept(seen, self._rights, limited)
        _LIMITED.move_to_end(self.tag)
        while len(_LIMITED) > MOST_KEPT:
            _LIMITED.popitem(last=False)
        return limited

    def _limited(self, seen: Snapshot) -> Snapshot:
        topics = {
            name: topic
            for name, topic in seen.topics.items()
            if self.may(Operation.DESCRIBE, ResourceType.TOPIC, name)
        }
        groups = self._groups(seen, topics)
        names = groups if not isinstance(groups, Unknown) else {}
        readers = readers_of(names)
        theirs = {
            name: topic
            if all(each in names for each in topic.groups)
            else topic._replace(
                groups=[group.group_id for group, _, _ in readers[name]],
                rate_out=None,
                lag=furthest(lag for _, lag, _ in readers[name]),
                late_ms=furthest(late for _, _, late in readers[name]),
            )
            for name, topic in topics.items()
        }
        sees_cluster = self.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
        return seen._replace(
            topics=theirs,
            groups=groups,
            brokers=seen.brokers if sees_cluster else {},
            health=_health(seen.health, theirs, sees_cluster=sees_cluster),
            totals=_totals(theirs),
            is_partial=True,
            commits=seen.commits if sees_cluster or seen.commits is None else _UNNAMED,
            silent=seen.silent if sees_cluster else {},
            audit={name: each for name, each in seen.audit.items() if name in theirs}
            if isinstance(seen.audit, Mapping)
            else seen.audit,
            tiers=_tiers(seen.tiers, theirs, sees_cluster=sees_cluster),
            untold_tiers=seen.untold_tiers if sees_cluster else {},
        )

    def etag(self, *of: object) -> str:
        """Without the viewer's name, which may have letters that no header has."""
        text = "\n".join(map(str, (*of, self.tag)))
        return f'"{hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'

    def history(self, seen: Snapshot, whole: History) -> History:
        """Without what has numbers of topics or groups that the viewer may not see."""
        return whole if self._rights is None else _Limited(whole, seen, self.of(seen))

    def _groups(self, seen: Snapshot, topics: Mapping[str, TopicSeen]) -> Mapping[str, GroupSeen] | Unknown:
        if isinstance(seen.groups, Unknown):
            return seen.groups
        return {
            name: _group(group, topics)
            for name, group in seen.groups.items()
            if self.may(Operation.DESCRIBE, ResourceType.GROUP, name)
        }


_UNNAMED: Final = Unknown("a coordinator does not tell what groups have committed")
"""In place of a reason that names a group."""
_UNNAMED_SETTINGS: Final = Unknown("the brokers do not tell the settings of topics")


class _Limited(History):
    def __init__(self, whole: History, seen: Snapshot, mine: Snapshot) -> None:
        super().__init__()
        self._whole = whole
        self._seen = seen
        self._mine = mine

    def of(self, track: Track, name: str, at_ms: int) -> list[float | None]:
        return self._whole.of(track, name, at_ms) if self._is_whole(track, name) else [None] * BUCKETS

    def _is_whole(self, track: Track, name: str) -> bool:
        """What this viewer sees of it is all that there is."""
        seen, mine = self._seen, self._mine
        if not name:
            return len(mine.topics) == len(seen.topics) and _has_all_groups(seen, mine)
        if track in (Track.IN, Track.OUT):
            there, theirs = seen.topics.get(name), mine.topics.get(name)
            return theirs is not None and (track is Track.IN or theirs is there or theirs == there)
        if isinstance(mine.groups, Unknown) or isinstance(seen.groups, Unknown):
            return False
        return name in mine.groups and mine.groups[name] is seen.groups.get(name)


def _has_all_groups(seen: Snapshot, mine: Snapshot) -> bool:
    if isinstance(mine.groups, Unknown) or isinstance(seen.groups, Unknown):
        return False
    return len(mine.groups) == len(seen.groups)


MOST_KEPT: Final = 64
"""Viewers whose last snapshot is kept."""


class _Kept(NamedTuple):
    seen: Snapshot
    rights: Rights
    limited: Snapshot


_LIMITED: OrderedDict[str, _Kept] = OrderedDict()


def _group(group: GroupSeen, topics: Mapping[str, TopicSeen]) -> GroupSeen:
    """Without the partitions of topics that the viewer may not see."""
    if isinstance(group.rails, Unknown):
        return group
    rails = [rail for rail in group.rails if rail.partition.topic in topics]
    if len(rails) == len(group.rails):
        return group
    lates = [rail.late_ms for rail in rails]
    late = None if None in lates else max((each for each in lates if each is not None), default=0)
    return group._replace(rails=rails, rate=None, lag=total(rail.lag for rail in rails), late_ms=late)


def _health(
    health: Health | Unknown, topics: Mapping[str, TopicSeen], *, sees_cluster: bool
) -> Health | Unknown:
    if isinstance(health, Unknown):
        return health

    def theirs(places: list[TopicPartition]) -> list[TopicPartition]:
        return [place for place in places if place.topic in topics]

    found = health._replace(
        partitions=sum(len(topic.partitions) for topic in topics.values()),
        offline=theirs(health.offline),
        under_min_isr=theirs(health.under_min_isr),
        at_min_isr=theirs(health.at_min_isr),
        under_replicated=theirs(health.under_replicated),
        not_preferred=theirs(health.not_preferred),
        moving={place: move for place, move in health.moving.items() if place.topic in topics},
        lagging={key: lag for key, lag in health.lagging.items() if key[0].topic in topics},
        thin={name: each for name, each in health.thin.items() if name in topics},
        holders={place: each for place, each in health.holders.items() if place.topic in topics},
    )
    return found if sees_cluster else found._replace(brokers={}, directories={}, leaders={}, replicas={})


def _tiers(
    tiers: Mapping[str, TierSeen] | Unknown, topics: Mapping[str, TopicSeen], *, sees_cluster: bool
) -> Mapping[str, TierSeen] | Unknown:
    """A fork does not name an origin that the viewer may not see."""
    if isinstance(tiers, Unknown):
        return tiers if sees_cluster else _UNNAMED_SETTINGS
    return {
        name: tier if tier.origin in topics else tier._replace(origin="")
        for name, tier in tiers.items()
        if name in topics
    }


def _totals(topics: Mapping[str, TopicSeen]) -> Totals:
    users = [topic for topic in topics.values() if not topic.internal]
    return Totals(
        len(users),
        sum(len(topic.partitions) for topic in users),
        total(topic.records for topic in users),
        total(topic.size_bytes for topic in users),
        total(topic.rate_in for topic in users),
        total(topic.rate_out for topic in users),
    )


def sight_of(request: Request) -> Sight:
    """Of this request. There is none that a guard has not let in, unless there is no guard."""
    found: Sight | None = request.scope.get(SCOPE) or request.app.state.sight
    assert found is not None, "a request came past the guard"
    return found
