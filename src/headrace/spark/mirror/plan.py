"""What a mirror does next, by its position and by what both clusters tell. Pure.

A topic of which records are gone, or that is not the one it was, stands still with a sentence; the others go
on. Nothing is ever skipped unless a person has said so for this start.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.mirror.position import Position, TopicPosition
from headrace.spark.source.limits import within
from headrace.spark.source.plan import Loss, View, losses

Accept = Literal["earliest", "latest"]
"""Where to go on behind records that are gone, if somebody has said that this is right."""


class Seen(NamedTuple):
    """What both clusters told. `view` has those of the source's topics that are to be mirrored."""

    view: View
    wanted: Mapping[str, str]
    """The target's topic for each that is to be mirrored, also where it is not there any more."""
    target_ids: Mapping[str, str]
    target_partitions: Mapping[str, int]
    """Both by the target's own names; without those that are not there."""


@dataclass(frozen=True)
class Step:
    begin: Offsets
    end: Offsets
    """Of the partitions that have something; the same keys as `begin`."""
    after: Position
    stopped: Mapping[str, str]
    """By topic, why it stands still."""

    @property
    def offsets(self) -> int:
        return sum(at - self.begin[each] for each, at in self.end.items())


def stopped(position: Position, seen: Seen) -> dict[str, str]:
    """By topic, the sentence."""
    found: dict[str, str] = {}
    for name, topic in position.topics.items():
        if name not in seen.wanted:
            continue
        if name not in seen.view.ids:
            found[name] = (
                f"topic {name} does not exist on the source any more. Its mirror {topic.target} stays as it "
                "is. If it was deleted on purpose, exclude it; the mirror then names it no more"
            )
        elif seen.target_ids.get(topic.target) != topic.target_id:
            what = (
                "was deleted and made anew" if topic.target in seen.target_ids else "does not exist any more"
            )
            found[name] = (
                f"topic {topic.target} of the target {what}: what was mirrored into it is gone, and no "
                "offset can be translated. To mirror everything again, give the mirror another name"
            )
        elif seen.wanted[name] != topic.target:
            found[name] = (
                f"topic {name} was mirrored into {topic.target} so far, and is to go into "
                f"{seen.wanted[name]} now: a topic has one mirror. Give it back its target, or give the "
                "mirror another name"
            )
    for loss in losses(position.offsets(), seen.view, position.ids()):
        found.setdefault(loss.topic, _sentence(loss))
    return found


def _sentence(loss: Loss) -> str:
    where = f"{loss.topic}, partition {loss.partition}"
    if loss.kind == "anew":
        what = (
            f"topic {loss.topic} was deleted and made anew on the source: its offsets begin again, and "
            "nobody can tell what of the old one was not mirrored"
        )
    elif loss.kind == "removed":
        what = (
            f"{where}: {loss.first - loss.position} offsets from {loss.position} on were removed from the "
            f"source before they were mirrored (by retention, or by hand); it begins at {loss.first} now"
        )
    else:
        what = (
            f"{where} ends at {loss.end} on the source, but was mirrored up to {loss.position}: its brokers "
            "lost records, which the target still has"
        )
    return f"{what}. To go on all the same: headrace mirror run --accept-loss earliest (or latest)"


def accepted(position: Position, view: View, choice: Accept) -> Position:
    """The position behind all losses there are now: nothing else of it changes."""
    found = losses(position.offsets(), view, position.ids())
    if not found:
        return position
    goal = view.earliest if choice == "earliest" else view.latest
    topics = {}
    for name in {loss.topic for loss in found}:
        topic = position.topics[name]
        if any(loss.kind == "anew" for loss in found if loss.topic == name):
            count = partitions_of(view)[name]
            fresh = tuple(goal[name, index] for index in range(count))
            topics[name] = replace(topic, id=view.ids[name], offsets=fresh)
            continue
        offsets = list(topic.offsets)
        for loss in found:
            if loss.topic == name:
                # What a log lost at its end cannot be read again from anywhere: it goes on from there.
                offsets[loss.partition] = loss.end if loss.kind == "cut" else goal[name, loss.partition]
        topics[name] = replace(topic, offsets=tuple(offsets))
    return position.with_topics(topics)


def partitions_of(view: View) -> dict[str, int]:
    counts: dict[str, int] = {}
    for topic, partition in view.latest:
        counts[topic] = max(counts.get(topic, 0), partition + 1)
    return counts


class Making(NamedTuple):
    """What is to be done on the target before topics can be adopted."""

    make: list[str]
    """Source topics whose target is not there."""
    grow: dict[str, int]
    """Source topics whose target has fewer partitions than they."""
    check: list[str]
    """Source topics whose target is there, and was not written by this mirror."""


def making(position: Position, seen: Seen, refused: Collection[str] = ()) -> Making:
    """Without topics that the target has `refused`."""
    found = Making([], {}, [])
    for name, count in partitions_of(seen.view).items():
        target = seen.wanted[name]
        known = name in position.topics
        if name in refused:
            continue
        if target not in seen.target_ids:
            if not known:
                found.make.append(name)
            continue
        if not known:
            found.check.append(name)
        if count > seen.target_partitions[target]:
            found.grow[name] = count
    return found


def adopted(
    position: Position, seen: Seen, start: Accept, refused: Collection[str] = ()
) -> dict[str, TopicPosition]:
    """Topics that are new to the mirror, with where they begin; and known ones that have more partitions.

    A partition that is added later is read from its beginning, whatever `start` says."""
    found = {}
    for name, count in partitions_of(seen.view).items():
        target = seen.wanted[name]
        if name in refused or seen.target_partitions.get(target, 0) < count:
            continue
        topic = position.topics.get(name)
        if topic is None:
            first = seen.view.earliest if start == "earliest" else seen.view.latest
            offsets = tuple(first[name, index] for index in range(count))
            found[name] = TopicPosition(seen.view.ids[name], target, seen.target_ids[target], offsets)
        elif count > len(topic.offsets) and topic.id == seen.view.ids[name]:
            added = tuple(seen.view.earliest[name, index] for index in range(len(topic.offsets), count))
            found[name] = replace(topic, offsets=topic.offsets + added)
    return found


def step(position: Position, seen: Seen, most: int, refused: Mapping[str, str] | None = None) -> Step:
    """The next batch: at most so many offsets, shared as the backlogs are. `refused`: by topic, why the
    target takes nothing of it."""
    wanted = {name: text for name, text in (refused or {}).items() if name in seen.wanted}
    still = {**wanted, **stopped(position, seen)}
    begin = {
        each: at
        for each, at in position.offsets().items()
        if each[0] not in still and seen.view.latest.get(each, at) > at
    }
    end = within(begin, {each: seen.view.latest[each] for each in begin}, most)
    end = {each: at for each, at in end.items() if at > begin[each]}
    return Step({each: begin[each] for each in end}, end, position.moved(end), still)


def lag(position: Position, view: View) -> dict[str, int]:
    """Offsets that are not mirrored yet, by topic."""
    found = dict.fromkeys(position.topics, 0)
    for (topic, partition), at in position.offsets().items():
        found[topic] += max(0, view.latest.get((topic, partition), at) - at)
    return found
