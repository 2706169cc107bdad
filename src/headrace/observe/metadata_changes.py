"""What differs between two looks at a cluster. Brokers tell that it is so now, and not who changed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.client.health import BrokerView
from headrace.client.topics import TopicState
from headrace.doctor.model import Unknown
from headrace.observe.look import Look

MOST_KEPT: Final = 500
MOST_OF_ONE_LOOK: Final = 100
"""Of what a script does to thousands of topics, the first ones, and how many there were."""


class MetadataChange(NamedTuple):
    after_ms: int
    """The look that did not have it yet."""
    until_ms: int
    topic: str
    """Empty where it is about the cluster."""
    sentence: str


def changes_between(before: Look, after: Look) -> list[MetadataChange]:
    """In the order of brokers and topics."""
    said = [*_of_brokers(before, after), *_of_topics(before.topics, after.topics)]
    if len(said) > MOST_OF_ONE_LOOK:
        rest = len(said) - MOST_OF_ONE_LOOK
        said = [*said[:MOST_OF_ONE_LOOK], ("", f"And {rest:,} more changes of topics.")]
    return [MetadataChange(before.at_ms, after.at_ms, topic, sentence) for topic, sentence in said]


_Said = tuple[str, str]


def _of_brokers(before: Look, after: Look) -> Iterator[_Said]:
    old, new = _by_number(before.view.brokers), _by_number(after.view.brokers)
    if before.view.controller != after.view.controller and _is_told_by_brokers(after):
        yield "", f"Broker {after.view.controller} is the controller; it was {before.view.controller}."
    for number in sorted({*old, *new}):
        was, now = old.get(number), new.get(number)
        if was is None and now is not None:
            yield "", f"Broker {number} has joined{f', at {now.address}' if now.host else ''}."
        elif was is not None and now is None:
            yield "", f"Broker {number} is not registered any more."
        elif was is not None and now is not None:
            yield from _of_broker(number, was, now)


def _is_told_by_brokers(look: Look) -> bool:
    """Who the controller is. Apache Kafka's brokers name any one of themselves, another each time."""
    return not isinstance(look.health, Unknown) and any(each.figures for each in look.health.brokers.values())


def _of_broker(number: int, was: BrokerView, now: BrokerView) -> Iterator[_Said]:
    if was.alive != now.alive:
        yield "", f"Broker {number} {'is back' if now.alive else 'has gone'}."
    if not was.host or not now.host:
        return  # one that is away is known by its number alone
    if was.address != now.address:
        yield "", f"Broker {number} is at {now.address}; it was at {was.address}."
    if was.rack != now.rack:
        yield "", f"Broker {number} is in rack {now.rack}; it was in {was.rack}."


def _of_topics(before: Sequence[TopicState], after: Sequence[TopicState]) -> Iterator[_Said]:
    old, new = ({topic.name: topic for topic in topics} for topics in (before, after))
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        if was is None and now is not None:
            factor = now.replication_factor
            yield (
                name,
                f"Topic {name} is there, with {_counted(len(now.partitions), 'partition')} and"
                f" {_counted(factor, 'replica')}.",
            )
        elif was is not None and now is None:
            yield name, f"Topic {name} is gone."
        elif was is not None and now is not None:
            yield from _of_topic(name, was, now)


def _of_topic(name: str, was: TopicState, now: TopicState) -> Iterator[_Said]:
    if was.topic_id != now.topic_id:
        yield name, f"Topic {name} was deleted and made again."
        return
    if len(was.partitions) != len(now.partitions):
        yield name, f"Topic {name} has {len(now.partitions)} partitions; it had {len(was.partitions)}."
    held: Mapping[int, Sequence[int]] = {each.partition: each.replicas for each in was.partitions}
    moved = [
        each
        for each in now.partitions
        if each.partition in held and sorted(held[each.partition]) != sorted(each.replicas)
    ]
    if moved:
        first = moved[0]
        was_on, is_on = (", ".join(map(str, each)) for each in (held[first.partition], first.replicas))
        more = f" {len(moved) - 1} more likewise." if len(moved) > 1 else ""
        yield name, f"{name}-{first.partition} is on {is_on}; it was on {was_on}.{more}"


def _counted(number: int, one: str) -> str:
    return f"{number} {one}{'' if number == 1 else 's'}"


def _by_number(brokers: Sequence[BrokerView]) -> dict[int, BrokerView]:
    return {each.broker_id: each for each in brokers}
