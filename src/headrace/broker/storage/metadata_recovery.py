"""What a stopped broker still knows of its cluster: its copy of the metadata log, read from its directory.

Only committed batches ever enter a copy, so each copy is a prefix of what was committed, and the longest one
is the best.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headrace.broker.cluster.metadata_partition import METADATA_PARTITION
from headrace.controller.codec import decode_metadata_batch
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import MetadataImage
from headrace.controller.replay import Replayer
from headrace.core.errors import ConfigError, CorruptLog, HeadraceError
from headrace.log import checkpoints, files
from headrace.log.directory_identity import read_meta_properties
from headrace.log.directory_lock import lock_directory
from headrace.log.os_disk import OsDisk
from headrace.protocol.batch import check
from headrace.protocol.stored.register_broker_record import RegisterBrokerRecord


class MetadataCopy(NamedTuple):
    directory: str
    cluster_id: str
    batches: list[bytes]
    end_offset: int
    broker_epoch: int
    """The highest that any registration in it has."""
    timestamp_ms: int
    """Of the last batch."""
    topics: int
    fault: str | None
    """Why reading ended before the files did."""


def read_copy(directory: str) -> MetadataCopy:
    """ConfigError if there is none, or a broker is using it; CorruptLog if nothing in it can be read."""
    disk = OsDisk()
    folder = os.path.join(directory, str(METADATA_PARTITION))
    if not os.path.isdir(folder):
        raise ConfigError(
            f"{directory} holds no {METADATA_PARTITION}: name the one of the broker's log.dirs that does"
        )
    cluster_id = read_meta_properties(disk, directory).get("cluster.id", "")
    if not cluster_id:
        raise ConfigError(f"{directory}/{checkpoints.META_PROPERTIES} names no cluster")
    lock = lock_directory(disk, os.path.join(directory, checkpoints.LOCK))
    try:
        return _read(directory, folder, cluster_id)
    finally:
        if lock is not None:
            lock.close()


def _read(directory: str, folder: str, cluster_id: str) -> MetadataCopy:
    replayer = Replayer(MetadataImage())
    batches: list[bytes] = []
    end, epoch, timestamp = 0, -1, -1
    fault = None
    try:
        for batch in _batches(folder):
            header = check(batch)
            if header.base_offset != end:
                raise CorruptLog(f"offset {header.base_offset} follows where {end} should")
            records = list(decode_metadata_batch(batch))
            replayer.replay_all(records, MetadataDelta())
            epoch = max([epoch, *(r.broker_epoch for r in records if isinstance(r, RegisterBrokerRecord))])
            batches.append(batch)
            end, timestamp = header.next_offset, header.max_timestamp
    except HeadraceError as error:
        fault = str(error)
    if not batches:
        raise CorruptLog(f"{folder} holds nothing that can be read" + (f": {fault}" if fault else ""))
    return MetadataCopy(
        directory, cluster_id, batches, end, epoch, timestamp, len(replayer.image.topics_by_name), fault
    )


def _batches(folder: str) -> Iterator[bytes]:
    for name in sorted(os.listdir(folder)):
        if not name.endswith(files.LOG):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            content = file.read()
        at = 0
        while at < len(content):
            header = check(content, at)
            yield content[at : at + header.size]
            at += header.size


def best_copy(copies: Sequence[MetadataCopy]) -> MetadataCopy:
    """The longest. ConfigError if they are not of one cluster."""
    names = {copy.cluster_id: copy.directory for copy in copies}
    if len(names) > 1:
        raise ConfigError(f"these are copies of different clusters: {', '.join(sorted(names))}")
    return max(copies, key=lambda copy: copy.end_offset)
