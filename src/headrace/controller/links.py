"""Links: what may be said of one, by an administrator and by the leaders of its partitions. Pure.

A leader's word counts only in its leader epoch, which is written before it: `7:` and what it says. Only a
leader that is still one may say that a partition is open, or why it is copied no more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import UUID

from headrace.controller import link_image
from headrace.controller.image import ConfigResource, MetadataImage, ResourceType
from headrace.controller.link_image import Link, LinkState
from headrace.controller.operations import ConfigChange, ConfigOp, RecordGroup
from headrace.controller.topic_image import TopicImage
from headrace.controller.topic_names import check_topic_name
from headrace.core.errors import (
    FencedLeaderEpoch,
    InvalidConfig,
    InvalidRequest,
    PolicyViolation,
    UnknownTopicOrPartition,
)
from headrace.protocol.stored.producer_ids_record import ProducerIdsRecord

_NEEDED: Final = (
    link_image.BOOTSTRAP,
    link_image.SOURCE_TOPIC,
    link_image.SOURCE_TOPIC_ID,
    link_image.SOURCE_CLUSTER_ID,
    link_image.STATE,
)
_FIXED: Final = (link_image.SOURCE_TOPIC, link_image.SOURCE_TOPIC_ID, link_image.SOURCE_CLUSTER_ID)
"""Another source would be another log."""
_CHANGEABLE: Final = (link_image.BOOTSTRAP, link_image.CLIENT_CONFIG, link_image.GROUPS)
_MAY_FOLLOW: Final[Mapping[LinkState, tuple[LinkState, ...]]] = {
    LinkState.ACTIVE: (LinkState.ACTIVE, LinkState.PAUSED),
    LinkState.PAUSED: (LinkState.ACTIVE, LinkState.PAUSED),
    LinkState.PROMOTING: (LinkState.ACTIVE, LinkState.PAUSED, LinkState.PROMOTING),
}
LARGEST_PRODUCER_ID: Final = 2**62
INTERNAL: Final = "__"

Values = dict[str, str | None]


def amended(image: MetadataImage, topic: str, changes: Sequence[ConfigChange]) -> Values:
    """What the link's values become. Raises what the asker is told."""
    link = image.links.get(topic)
    if link is None:
        return _created(image, topic, changes)
    after: Values = {}
    for change in changes:
        if change.op not in (ConfigOp.SET, ConfigOp.DELETE):
            raise InvalidRequest(f"{change.name} of a link can be set or deleted")
        value = None if change.op == ConfigOp.DELETE else change.value
        after.update(_changed(image, topic, link, change.name, value))
    return after


def records_beside(image: MetadataImage, changes: Sequence[ConfigChange]) -> RecordGroup:
    """Producer ids that came from the source are never handed out here: by the record that opens the
    partition."""
    highest = max((_reserved(change) for change in changes), default=0)
    if highest <= image.next_producer_id:
        return []
    return [ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=highest)]


def _reserved(change: ConfigChange) -> int:
    """The least producer id above those of the source, if a partition is opened by it."""
    if change.op != ConfigOp.SET or not change.name.startswith(link_image.OPENED):
        return 0
    try:
        return _opening(change.value)[2]
    except InvalidRequest:
        return 0  # that was refused; another resource of the request was not


def _created(image: MetadataImage, topic: str, changes: Sequence[ConfigChange]) -> Values:
    if all(change.op == ConfigOp.DELETE for change in changes):
        raise UnknownTopicOrPartition(f"topic {topic!r} has no link")
    check_topic_name(topic)
    if topic.startswith(INTERNAL):
        raise PolicyViolation(f"{topic} is a topic of the brokers: it cannot be linked")
    if topic in image.topics_by_name:
        raise PolicyViolation(
            f"topic {topic!r} exists already: a link makes its topic itself, so that both logs are the same;"
            " delete the topic, or link under another name"
        )
    values: Values = {change.name: change.value for change in changes}
    for name in _NEEDED:
        if not values.get(name):
            raise InvalidConfig(f"a new link needs {name}")
    for other, known in image.links.items():
        if known.values.get(link_image.SOURCE_TOPIC_ID) == values[link_image.SOURCE_TOPIC_ID] and (
            known.state != LinkState.PROMOTED
        ):
            raise PolicyViolation(f"that topic is linked already, as {other!r}")
    for name, value in values.items():
        if name not in (*_NEEDED, *_CHANGEABLE):
            raise InvalidConfig(f"a link has no value {name}")
        _check(name, value)
    if values[link_image.STATE] != LinkState.ACTIVE:
        raise InvalidConfig(f"a new link is {LinkState.ACTIVE}")
    return values


def _check(name: str, value: str | None) -> None:
    if name == link_image.SOURCE_TOPIC_ID:
        try:
            UUID(value)
        except (ValueError, TypeError):
            raise InvalidConfig(f"{name}={value} is no id of a topic") from None
    elif name == link_image.BOOTSTRAP and not all(map(_is_address, (value or "").split(","))):
        raise InvalidConfig(f"{name}={value!r} is not HOST:PORT, or several with commas between them")
    elif name == link_image.CLIENT_CONFIG and value is not None and ("/" in value or value.startswith(".")):
        raise InvalidConfig(
            f"{name}={value}: name a file in each broker's headrace.link.client.config.dir, without a path"
        )


def _is_address(text: str) -> bool:
    """As those who go there read it: the port may be left out, an IPv6 address stands in brackets."""
    text = text.strip(" ")
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, "9092"
    is_port = port.isascii() and port.isdecimal() and 0 < int(port) < 65536
    return is_port and host != "" and host.isprintable() and " " not in host


def _changed(image: MetadataImage, topic: str, link: Link, name: str, value: str | None) -> Values:
    if name == link_image.STATE:
        return _state(image, topic, link, value)
    for prefix, decide in _LEADERS_WORDS.items():
        if name.startswith(prefix):
            return decide(image, topic, link, name, value)
    if name in _FIXED:
        if value == link.values[name]:
            return {}
        raise PolicyViolation(
            f"the link of {topic!r} has {name}={link.values[name]}: another source would be another log;"
            " delete the link and create it anew"
        )
    if name not in _CHANGEABLE:
        raise InvalidConfig(f"a link has no value {name}")
    if name == link_image.BOOTSTRAP and not value:
        raise InvalidConfig(f"a link needs {name}")
    _check(name, value)
    return {name: value}


def _state(image: MetadataImage, topic: str, link: Link, value: str | None) -> Values:
    if value is None:
        return _deleted(image, topic)
    try:
        wanted = LinkState(value)
    except ValueError:
        raise InvalidConfig(f"{value} is no state of a link") from None
    if wanted not in _MAY_FOLLOW:
        raise PolicyViolation(f"a link becomes {wanted} by itself")
    if wanted == LinkState.PROMOTING and link.state == LinkState.PROMOTED:
        return {}
    if link.state not in _MAY_FOLLOW[wanted]:
        raise PolicyViolation(f"the link of {topic!r} is {link.state}: it copies no more, and cannot again")
    values: Values = {link_image.STATE: wanted}
    if wanted == LinkState.ACTIVE:
        values.update({f"{link_image.STOPPED}{partition}": None for partition in link.stopped})
    if wanted == LinkState.PROMOTING and topic not in image.topics_by_name:
        raise UnknownTopicOrPartition(
            f"topic {topic!r} is not there yet: create the link again, then promote"
        )
    return values


def _deleted(image: MetadataImage, topic: str) -> Values:
    """Only where the creation went no further. With its topic a link goes by itself."""
    if topic in image.topics_by_name:
        raise PolicyViolation(f"the link goes with its topic: delete topic {topic!r}, or promote it")
    return dict.fromkeys(image.configs(link_resource(topic)))


def link_resource(topic: str) -> ConfigResource:
    return ConfigResource(ResourceType.LINK, topic)


# --- what leaders of its partitions say -----------------------------------------------------------------


def _stopped(image: MetadataImage, topic: str, link: Link, name: str, value: str | None) -> Values:
    partition, said = _said_by_leader(image, topic, name, value)
    if link.state in (LinkState.PROMOTING, LinkState.PROMOTED) or partition in link.stopped:
        return {}
    return {name: said}


def _opened(image: MetadataImage, topic: str, link: Link, name: str, value: str | None) -> Values:
    partition, _ = _said_by_leader(image, topic, name, value)
    if link.state != LinkState.PROMOTING:
        raise PolicyViolation(f"the link of {topic!r} is {link.state}, and nobody promotes it")
    if partition in link.opened:
        return {}
    return {name: str(_opening(value)[1])}


def completed(image: MetadataImage, topic: str, values: Values) -> Values:
    """The same, and the end of a promotion if all partitions are open with it."""
    link, hosted = image.links.get(topic), image.topic(topic)
    if link is None or hosted is None or link.state != LinkState.PROMOTING:
        return values
    opened = {*link.opened, *(_partition_of(name) for name in values if name.startswith(link_image.OPENED))}
    if any(partition not in opened for partition in range(len(hosted))):
        return values
    return {**values, link_image.STATE: LinkState.PROMOTED}


def _said_by_leader(image: MetadataImage, topic: str, name: str, value: str | None) -> tuple[int, str]:
    hosted = image.topic(topic)
    partition = _partition_of(name)
    if hosted is None or partition not in hosted:
        raise UnknownTopicOrPartition(f"there is no partition {partition} of {topic!r}")
    epoch, _, said = (value or "").partition(":")
    if not epoch.isdigit() or not said:
        raise InvalidRequest(f"{name} is said by the leader of the partition, with its leader epoch")
    _check_epoch(hosted, partition, int(epoch))
    return partition, said


def _check_epoch(topic: TopicImage, partition: int, epoch: int) -> None:
    known = topic.leader_epochs[partition]
    if epoch != known:
        raise FencedLeaderEpoch(f"{topic.name}-{partition} is in leader epoch {known}, not {epoch}")


def _partition_of(name: str) -> int:
    text = name.rpartition(".")[2]
    if not text.isdigit():
        raise InvalidRequest(f"{name} names no partition")
    return int(text)


def _opening(value: str | None) -> tuple[int, int, int]:
    """Leader epoch, offset, and the least producer id above all that the partition has."""
    parts = (value or "").split(":")
    if len(parts) != 3 or not all(part.isdigit() for part in parts) or int(parts[2]) > LARGEST_PRODUCER_ID:
        raise InvalidRequest("a partition is opened with leader epoch, offset and producer id")
    return int(parts[0]), int(parts[1]), int(parts[2])


_LEADERS_WORDS: Final[Mapping[str, Callable[[MetadataImage, str, Link, str, str | None], Values]]] = {
    link_image.STOPPED: _stopped,
    link_image.OPENED: _opened,
}
