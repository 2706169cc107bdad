"""Partitions that a lone broker knows and does not find, because the disk that held them is not here.

Each registration is in the metadata, with the ids of the log directories that worked. While one of those is
missing, a log that is found nowhere may be in it: made anew it would be empty, take writes, and stand beside
the old one when the disk is back. So it is offline. While none is missing, a log that is not found was never
made (the process was killed between the commit and the making), or somebody has moved it away.

In a cluster the controller decides this, and other replicas have the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from headrace.core.ids import NO_TOPIC_ID, TopicPartition
from headrace.log.checkpoints import encode_uuid

if TYPE_CHECKING:
    from headrace.controller.image import MetadataImage
    from headrace.log.manager import LogManager

_WHAT_TO_DO: Final = (
    "mount the disk, or name it in log.dirs again, then restart the broker; to give up what it held, delete"
    " the topic, or stop the broker and make an empty folder of the partition's name in one of log.dirs"
)


class MissingLogs(NamedTuple):
    directories: tuple[UUID, ...]
    """To be registered beside those that work, or the next start would not know that they are missing."""
    partitions: Mapping[tuple[UUID, int], str]
    """What to say of each. By topic id: another topic of the same name has nothing to miss."""


def find_missing(image: MetadataImage, broker_id: int, logs: LogManager) -> MissingLogs:
    """Before this process registers. A directory from which nothing is missed is forgotten."""
    registered = image.brokers.get(broker_id)
    online = {directory.uuid for directory in logs.online()}
    gone = () if registered is None else tuple(each for each in registered.directories if each not in online)
    if registered is None or not gone:
        return MissingLogs((), {})
    partitions: dict[tuple[UUID, int], str] = {}
    served = True
    why = f"{_whereabouts(logs, registered.directories, gone)}: {_WHAT_TO_DO}"
    for topic in image.topics_by_name.values():
        for index in topic.partitions_with_replica(broker_id):
            name = TopicPartition(topic.name, index)
            log = logs.logs.get(name)
            if log is not None and log.topic_id in (topic.topic_id, NO_TOPIC_ID):
                served = served and log.directory.is_online
            elif name not in logs.quarantined:
                partitions[topic.topic_id, index] = f"no log directory holds {name}, and {why}"
    return MissingLogs(() if served and not partitions else gone, partitions)


def _whereabouts(logs: LogManager, registered: tuple[UUID, ...], gone: tuple[UUID, ...]) -> str:
    """Only ids are known of what is missing. Which paths they had, those tell that are not as before."""
    suspects = [str(directory.failure) for directory in logs.directories if not directory.is_online]
    suspects += [f"{each.path} is a new one" for each in logs.online() if each.uuid not in registered]
    ids = ", ".join(encode_uuid(each) for each in gone)
    return f"a log directory of earlier is missing (directory.id {ids}; {_joined(suspects)})"


def _joined(suspects: list[str]) -> str:
    return "; ".join(suspects) or "log.dirs does not name it"
