"""Brings partitions that another broker wrote, Apache Kafka above all, into a stopped broker's directory.

The files are copied, never moved; every batch is checked on the way in, and indexes are built anew. Only then
do the topics enter the metadata, in one batch: until that is synced, nothing has happened that a broker sees.
The lock of the directory is held throughout, so a broker that runs is an error and never a race.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from headrace.broker.cluster.metadata_partition import METADATA_PARTITION
from headrace.config.broker import BrokerConfig
from headrace.config.topic import TopicConfig, resolve_topic
from headrace.config.validation import validate_topic_overrides
from headrace.controller.codec import decode_metadata_batch, encode_metadata_batch, pack
from headrace.controller.delta import MetadataDelta
from headrace.controller.features import finalise_first
from headrace.controller.image import MetadataImage, ResourceType
from headrace.controller.log_journal import METADATA_LOG_CONFIGS, LogJournal
from headrace.controller.replay import Replayer
from headrace.controller.topic_names import check_topic_name
from headrace.core.errors import ConfigError, HeadraceError
from headrace.core.ids import NO_TOPIC_ID, TopicPartition
from headrace.log import checkpoints, files, scan
from headrace.log.directory_identity import DirectoryIdentity, read_meta_properties
from headrace.log.manager import LogManager
from headrace.log.os_disk import OsDisk, make_private_directories, private_opener
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import open_log
from headrace.log.wholeness import Claims
from headrace.protocol.message import Message
from headrace.protocol.stored.config_record import ConfigRecord
from headrace.protocol.stored.partition_record import PartitionRecord
from headrace.protocol.stored.producer_ids_record import ProducerIdsRecord
from headrace.protocol.stored.topic_record import TopicRecord

INCOMING: Final = ".adopting"
"""Ends the name of a directory that is being copied: no partition's directory ends so."""
_COPIED: Final = (files.LOG, files.SNAPSHOT)
"""Indexes are not copied: a running Kafka leaves them larger than what they hold."""


class AdoptionError(HeadraceError):
    """The partitions cannot be taken as they are. Nothing was changed."""


class Source(NamedTuple):
    partition: TopicPartition
    path: str
    topic_id: UUID
    log_start_offset: int
    bytes: int


class Adopted(NamedTuple):
    partition: TopicPartition
    topic_id: UUID
    log_start_offset: int
    end_offset: int
    bytes: int
    left_out_bytes: int
    """At the end of the source, where its last write was not whole."""


def find_sources(paths: Sequence[str]) -> list[Source]:
    """The partitions at `paths`: their own directories, or a log directory that holds several.

    From a log directory the topics that brokers keep for themselves (`__...`) are left where they are.
    """
    found: dict[TopicPartition, Source] = {}
    for path in (os.path.normpath(os.path.abspath(given)) for given in paths):
        partition = files.parse_directory(os.path.basename(path))
        if partition is not None:
            inside = [(partition, path)]
        else:
            names = sorted(os.listdir(path))
            named = ((files.parse_directory(name), f"{path}/{name}") for name in names)
            inside = [(each, at) for each, at in named if each and not each.topic.startswith("__")]
        if not inside:
            raise AdoptionError(f"{path} is no partition, and holds none: name a directory such as orders-0")
        for each, at in inside:
            if each in found:
                raise AdoptionError(f"{each} is named twice: {found[each].path} and {at}")
            found[each] = _source(each, at)
    return sorted(found.values())


def _source(partition: TopicPartition, path: str) -> Source:
    disk = OsDisk()
    check_topic_name(partition.topic)
    logs = [name for name in os.listdir(path) if name.endswith(files.LOG)]
    if not logs:
        raise AdoptionError(f"{path} holds no segment")
    try:
        topic_id = checkpoints.parse_partition_metadata(
            files.read_all(disk, f"{path}/{files.PARTITION_METADATA}")
        )
    except (FileNotFoundError, checkpoints.CorruptCheckpoint):
        topic_id = NO_TOPIC_ID
    starts = checkpoints.load_offsets(disk, f"{os.path.dirname(path)}/{checkpoints.LOG_START_OFFSETS}")
    size = sum(os.path.getsize(f"{path}/{name}") for name in logs)
    return Source(partition, path, topic_id, starts.get(partition, 0), size)


def adopt(
    sources: Sequence[Source],
    data_directory: str,
    *,
    broker_id: int = 1,
    configs: Mapping[str, str] | None = None,
    progress: Callable[[Source], None] | None = None,
) -> list[Adopted]:
    """Copy `sources` in and enter their topics into the metadata. `broker_id` counts for a new directory."""
    overrides = dict(configs or {})
    validate_topic_overrides(overrides)
    _require_whole_topics(sources)
    target = _Target(data_directory, broker_id, overrides)
    try:
        target.require_new(sources)
        adopted = []
        for source in sources:
            if progress is not None:
                progress(source)
            adopted.append(target.take(source))
    except BaseException:
        target.undo()
        raise
    try:
        target.enter(adopted)
    finally:
        target.close()
    return adopted


def _require_whole_topics(sources: Sequence[Source]) -> None:
    by_topic: dict[str, list[Source]] = {}
    for source in sources:
        by_topic.setdefault(source.partition.topic, []).append(source)
    for topic, members in by_topic.items():
        have = {source.partition.partition for source in members}
        missing = sorted(set(range(max(have) + 1)) - have)
        if missing:
            names = ", ".join(f"{topic}-{index}" for index in missing)
            raise AdoptionError(
                f"a topic is adopted whole, and these partitions of {topic} are not named: {names}"
            )
        if len({source.topic_id for source in members}) > 1:
            raise AdoptionError(
                f"the partitions of {topic} carry different topic ids: they are of two topics"
            )


class _Target:
    """The log directory that is filled, locked from beginning to end."""

    def __init__(self, path: str, broker_id: int, overrides: dict[str, str]) -> None:
        self.disk = OsDisk()
        self.path = os.path.abspath(path)
        self.overrides = overrides
        self.now_ms = time.time_ns() // 1_000_000
        known = read_meta_properties(self.disk, self.path)
        self.broker_id = int(known.get("node.id", known.get("broker.id", broker_id)))
        self.broker = BrokerConfig.parse({"broker.id": str(self.broker_id), "log.dirs": self.path})
        identity = DirectoryIdentity(
            known.get("cluster.id") or checkpoints.encode_uuid(uuid4()), self.broker_id
        )
        self.logs = LogManager(self.disk, [self.path], identity, self._config_of, new_uuid=uuid4)
        self.taken: list[PartitionLog] = []
        try:
            self.watermarks = self.logs.open_all(self.now_ms)
            self.metadata_log = self._metadata_log()
            self.image = self._replay()
        except BaseException:
            self.logs.release()
            raise

    def _config_of(self, topic: str) -> TopicConfig:
        return resolve_topic(
            self.broker, {}, {}, METADATA_LOG_CONFIGS if topic == METADATA_PARTITION.topic else self.overrides
        )

    def _metadata_log(self) -> PartitionLog:
        if METADATA_PARTITION in self.logs.logs or METADATA_PARTITION in self.logs.quarantined:
            return self.logs.get(METADATA_PARTITION)
        if self.logs.logs:
            raise ConfigError(
                f"{self.path} holds partitions but no metadata of a Headrace broker: "
                "adopt them into an empty directory instead"
            )
        return self.logs.create(METADATA_PARTITION, NO_TOPIC_ID, self.now_ms)

    def _replay(self) -> MetadataImage:
        replayer = Replayer(MetadataImage())
        for batch in LogJournal(self.metadata_log, now_ms=lambda: self.now_ms).read(0):
            replayer.replay_all(decode_metadata_batch(batch), MetadataDelta())
        if replayer.in_transaction:
            raise AdoptionError(
                "the last change of the metadata was cut off: start the broker once, then stop it"
            )
        return replayer.image

    def require_new(self, sources: Sequence[Source]) -> None:
        for source in sources:
            topic = source.partition.topic
            if self.image.topic(topic) is not None:
                raise AdoptionError(
                    f"topic {topic} is there already: delete it first, with `headrace topic delete {topic}`"
                )
            other = self.image.name_collision(topic)
            if other is not None:
                raise AdoptionError(
                    f"topic {topic} and the topic {other} that is there differ only in . and _"
                )
            if source.topic_id != NO_TOPIC_ID and self.image.topic_by_id(source.topic_id) is not None:
                raise AdoptionError(f"the topic id of {topic} belongs to another topic here")
            if os.path.exists(f"{self.path}/{source.partition}"):
                raise AdoptionError(f"{self.path}/{source.partition} is there already: move it away")

    def take(self, source: Source) -> Adopted:
        final = f"{self.path}/{source.partition}"
        incoming = final + INCOMING
        shutil.rmtree(incoming, ignore_errors=True)
        _copy(source.path, incoming)
        os.rename(incoming, final)
        directory = self.logs.directories[0]
        log = open_log(
            directory,
            final,
            source.partition,
            self._config_of(source.partition.topic),
            Claims(log_start_offset=source.log_start_offset),
            clean=False,
            now_ms=self.now_ms,
            foreign=True,
        )
        self.taken.append(log)
        self.logs.logs[source.partition] = log
        self.watermarks[source.partition] = log.end_offset
        return Adopted(
            source.partition,
            source.topic_id,
            log.log_start_offset,
            log.end_offset,
            source.bytes,
            max(0, source.bytes - log.size_bytes),
        )

    def enter(self, adopted: Sequence[Adopted]) -> None:
        """The commit: after this the topics exist."""
        self._sync_taken()
        groups = list(finalise_first(self.image).groups)
        topics: dict[str, list[Adopted]] = {}
        for item in adopted:
            topics.setdefault(item.partition.topic, []).append(item)
        groups += [self._records(name, members) for name, members in topics.items()]
        groups += self._producer_ids()
        epoch = max(self.metadata_log.latest_epoch, 0)
        for payload in pack(groups):
            batch = encode_metadata_batch(
                payload.values,
                base_offset=self.metadata_log.end_offset,
                controller_epoch=epoch,
                timestamp_ms=self.now_ms,
            )
            self.metadata_log.append_as_follower(batch, now_ms=self.now_ms)
        self.metadata_log.flush()

    def _sync_taken(self) -> None:
        for log in self.taken:
            log.flush()
        os.sync()  # the copies were written by other calls than the log's own

    def _records(self, name: str, members: Sequence[Adopted]) -> list[Message]:
        topic_id = members[0].topic_id if members[0].topic_id != NO_TOPIC_ID else uuid4()
        records: list[Message] = [TopicRecord(name=name, topic_id=topic_id)]
        for item in sorted(members):
            log = self.logs.get(item.partition)
            files.replace(
                self.disk,
                f"{log.path}/{files.PARTITION_METADATA}",
                checkpoints.format_partition_metadata(topic_id),
                sync=True,
            )
            records.append(
                PartitionRecord(
                    partition_id=item.partition.partition,
                    topic_id=topic_id,
                    replicas=[self.broker_id],
                    isr=[self.broker_id],
                    leader=self.broker_id,
                    # The broker raises it when it starts, so it is above every epoch in the log.
                    leader_epoch=max(log.latest_epoch, 0),
                    partition_epoch=0,
                    directories=[self.logs.directories[0].uuid],
                )
            )
        records += [
            ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=name, name=key, value=value)
            for key, value in self.overrides.items()
        ]
        return records

    def _producer_ids(self) -> list[list[Message]]:
        """Ids in the adopted logs are not given out again: a new producer would seem to repeat an old one."""
        highest = max(
            (
                header.producer_id
                for log in self.taken
                for segment in log.segments
                for _, header in scan.headers(segment.file(), 0, segment.size)
            ),
            default=-1,
        )
        if highest < self.image.next_producer_id:
            return []
        return [[ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=highest + 1)]]

    def undo(self) -> None:
        """Take away what was copied; the sources were never touched."""
        for log in self.taken:
            self.logs.logs.pop(log.topic_partition, None)
            self.watermarks.pop(log.topic_partition, None)
            log.abandon()
            shutil.rmtree(log.path, ignore_errors=True)
        for name in os.listdir(self.path):
            if name.endswith(INCOMING):
                shutil.rmtree(f"{self.path}/{name}", ignore_errors=True)
        self.close()

    def close(self) -> None:
        self.logs.shut_down(self.logs.broker_epoch_at_stop, self.watermarks)


def _copy(source: str, target: str) -> None:
    make_private_directories(target)
    for name in sorted(os.listdir(source)):
        if name.endswith(_COPIED) or name == files.EPOCHS:
            with open(f"{target}/{name}", "xb", opener=private_opener):
                pass  # made before it is filled, so that nobody reads it meanwhile
            shutil.copyfile(f"{source}/{name}", f"{target}/{name}")
