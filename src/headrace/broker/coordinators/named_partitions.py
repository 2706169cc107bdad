"""Requests that name partitions: what does not exist is answered here, the rest by a coordinator."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Protocol, TypeVar

from headrace.controller.image import MetadataImage


class NamesPartitions(Protocol):
    """A request whose topics have a name and partitions. Generated classes share no base that says so."""

    topics: list[Any]


class AnswersPartitions(Protocol):
    name: str
    partitions: list[Any]


A = TypeVar("A", bound=AnswersPartitions)


def take_unknown(
    image: MetadataImage, request: NamesPartitions, answer: Callable[[str, list[Any]], A]
) -> list[A]:
    """What does not exist is taken out of the request, and answered."""
    unknown: list[A] = []
    known = []
    for topic in request.topics:
        found = image.topic(topic.name)
        count = 0 if found is None else len(found)
        missing = [each for each in topic.partitions if not 0 <= each.partition_index < count]
        if missing or found is None:
            unknown.append(answer(topic.name, missing))
        topic.partitions = [each for each in topic.partitions if 0 <= each.partition_index < count]
        if topic.partitions:
            known.append(topic)
    request.topics = known
    return unknown


def by_name(topic: AnswersPartitions) -> Hashable:
    return topic.name


def merged(refused: Iterable[A], decided: Iterable[A], key: Callable[[A], Hashable] = by_name) -> list[A]:
    """Each topic once, as a client may count on."""
    topics: dict[Hashable, A] = {}
    for topic in (*refused, *decided):
        first = topics.setdefault(key(topic), topic)
        if first is not topic:
            first.partitions += topic.partitions
    return list(topics.values())
