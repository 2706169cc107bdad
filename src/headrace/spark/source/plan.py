"""What a stream does next, by its position and by what the brokers tell. Pure.

Offsets alone do not tell whether a topic is still the one that was read: a topic that was deleted and made
anew may have grown past the old position. Its id tells. So the ids are remembered beside the checkpoint.

Where records are gone and the user has chosen to go on, the stream makes a *passage*: a batch that reads
nothing, from where it was to where it goes on. The passage is remembered before Spark writes down the batch,
and forgotten when Spark has committed it. So a restart in between makes the same passage, and a batch that is
repeated reads nothing again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from headrace.core.errors import HeadraceError
from headrace.spark.lake.checkpoint import Offsets, offsets_json, offsets_of
from headrace.spark.source.options import OnLoss

_NAMED: Final = 5
_VERSION: Final = 1


class RecordsLost(HeadraceError):
    """Records that were not read are gone; says which, and what can be done."""


class Loss(NamedTuple):
    topic: str
    partition: int
    kind: Literal["anew", "removed", "cut"]
    position: int
    first: int
    end: int


class View(NamedTuple):
    """What the brokers told, in this order: so, if the ids are the known ones, the offsets are of these."""

    latest: Offsets
    earliest: Offsets
    ids: Mapping[str, str]


class Passage(NamedTuple):
    """Of the partitions that are concerned: from where to where. Some may only be on one side."""

    after: Offsets
    to: Offsets

    def skips(self, partition: tuple[str, int], start: Offsets, end: Offsets) -> bool:
        """Whether this range of a batch is the passage, and nothing to read."""
        return (
            partition in self.to
            and end.get(partition) == self.to[partition]
            and start.get(partition) == self.after.get(partition)
        )

    def is_before(self, position: Offsets) -> bool:
        return self._matches(position, self.after)

    def _matches(self, position: Offsets, side: Offsets) -> bool:
        return all(position.get(each) == side.get(each) for each in {*self.after, *self.to})


@dataclass(frozen=True)
class Memory:
    """What is kept beside the checkpoint."""

    ids: Mapping[str, str] = field(default_factory=dict)
    passage: Passage | None = None

    def text(self) -> str:
        document: dict[str, object] = {"version": _VERSION, "ids": dict(self.ids)}
        if self.passage is not None:
            document["passage"] = {
                "after": json.loads(offsets_json(self.passage.after)),
                "to": json.loads(offsets_json(self.passage.to)),
            }
        return json.dumps(document)


def memory_of(text: str | None) -> Memory:
    """A checkpoint that the bare connector made has none: its topics are taken as they are now."""
    if text is None:
        return Memory()
    document = json.loads(text)
    if document["version"] != _VERSION:
        raise RecordsLost(
            f"the checkpoint's topics.json has version {document['version']}, and {_VERSION} is known here: "
            "use the Headrace that wrote it, or a newer one"
        )
    way = document.get("passage")
    return Memory(
        document["ids"], None if way is None else Passage(offsets_of(way["after"]), offsets_of(way["to"]))
    )


class Step(NamedTuple):
    memory: Memory
    """To be kept before the batch is planned."""
    passage_end: Offsets | None = None
    """Where a batch that is a passage ends; None where reading goes on."""


def step(memory: Memory, position: Offsets, view: View, on_loss: OnLoss) -> Step:
    """Raises RecordsLost where records are gone and nobody has chosen to go on."""
    if memory.passage is not None and memory.passage.is_before(position):
        return Step(memory, _through(position, memory.passage))
    found = losses(position, view, memory.ids)
    ids = {**memory.ids, **view.ids}
    if not found:
        return Step(Memory(ids))
    if on_loss == "fail":
        raise RecordsLost(complaint(found))
    way = _passage(position, view, found, on_loss)
    if way.after == way.to:
        return Step(Memory(ids))
    return Step(Memory(ids, way), _through(position, way))


def again(
    begin: Offsets, end: Offsets, view: View, known: Mapping[str, str], on_loss: OnLoss
) -> tuple[Offsets, Offsets]:
    """What is still there of a batch that an earlier run has planned: nothing of a topic that was made anew,
    since what has these offsets now is not what the batch was to read, and nothing behind the end of a log.
    Tasks pass over what was removed. Where the stream goes on is for the step behind the batch.

    Raises RecordsLost where records are gone and nobody has chosen to go on.
    """
    found = [loss for loss in losses(begin, view, known) if loss.kind == "removed"]
    found += [loss for loss in losses(end, view, known) if loss.kind != "removed"]
    if found and on_loss == "fail":
        raise RecordsLost(complaint(found))
    anew = {loss.topic for loss in found if loss.kind == "anew"}
    ends = {
        each: max(begin.get(each, 0), min(at, view.latest.get(each, at)))
        for each, at in end.items()
        if each[0] not in anew
    }
    return {each: at for each, at in begin.items() if each in ends}, ends


def losses(position: Offsets, view: View, known: Mapping[str, str]) -> list[Loss]:
    """A partition that the brokers do not name just now is not lost: they may be behind."""
    anew = {topic for topic, old in known.items() if topic in view.ids and view.ids[topic] != old}
    found = []
    for (topic, partition), at in sorted(position.items()):
        each = (topic, partition)
        first, end = view.earliest.get(each, 0), view.latest.get(each, 0)
        if topic in anew:
            found.append(Loss(topic, partition, "anew", at, first, end))
        elif each in view.latest and at < first:
            found.append(Loss(topic, partition, "removed", at, first, end))
        elif each in view.latest and at > end:
            found.append(Loss(topic, partition, "cut", at, first, end))
    return found


def _passage(position: Offsets, view: View, found: Iterable[Loss], on_loss: OnLoss) -> Passage:
    anew = {loss.topic for loss in found if loss.kind == "anew"}
    lost = {(loss.topic, loss.partition) for loss in found}
    goal = view.earliest if on_loss == "earliest" else view.latest
    return Passage(
        {each: at for each, at in position.items() if each in lost},
        {each: goal[each] for each in view.latest if each in lost or each[0] in anew},
    )


def _through(position: Offsets, way: Passage) -> Offsets:
    return {**{each: at for each, at in position.items() if each not in way.after}, **way.to}


def complaint(found: list[Loss]) -> str:
    said = []
    told: set[str] = set()
    for loss in found:
        where = f"{loss.topic}, partition {loss.partition}"
        if loss.kind == "anew":
            if loss.topic not in told:
                said.append(
                    f"topic {loss.topic} was deleted and made anew: its offsets begin again, and nobody can "
                    "tell what of the old one was not read"
                )
            told.add(loss.topic)
        elif loss.kind == "removed":
            said.append(
                f"{where}: {loss.first - loss.position} offsets from {loss.position} on were removed before "
                f"they were read (by retention, or by hand); it begins at {loss.first} now"
            )
        else:
            said.append(f"{where} ends at {loss.end}, but was read to {loss.position}: brokers lost records")
    if len(said) > _NAMED:
        said[_NAMED:] = [f"{len(said) - _NAMED} more"]
    return (
        f"{'; '.join(said)}. To go on, start the query again, with the same checkpoint, with "
        'on_loss="earliest" (from the first record that is there) or on_loss="latest" (with what comes from '
        "now on)"
    )


def gone(topics: Iterable[str]) -> str:
    return (
        f"topic {', '.join(sorted(topics))} does not exist. If it was deleted, create it and start the query "
        'again with on_loss="earliest" or on_loss="latest"; with either, a query waits for it'
    )
