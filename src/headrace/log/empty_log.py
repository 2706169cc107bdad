"""The log of a partition that is new: one segment with nothing in it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from headrace.core.ids import TopicPartition
from headrace.log import files
from headrace.log.directory import LogDirectory
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.partition_log import PartitionLog
from headrace.log.producer_state import ProducerStates
from headrace.log.segment import Segment

if TYPE_CHECKING:
    from headrace.config.topic import TopicConfig


def empty_log(
    directory: LogDirectory,
    path: str,
    partition: TopicPartition,
    config: TopicConfig,
    topic_id: UUID,
    now_ms: int,
) -> PartitionLog:
    segment = Segment(
        directory,
        path,
        0,
        created_ms=now_ms,
        index_interval=config.index_interval_bytes,
        max_index_bytes=config.segment_index_bytes,
    )
    segment.create_file()
    segment.release()
    log = PartitionLog(
        directory,
        path,
        partition,
        config,
        segments=[segment],
        epochs=LeaderEpochs(directory.disk, f"{path}/{files.EPOCHS}"),
        producers=ProducerStates(directory.admits_producer),
        log_start_offset=0,
        end_offset=0,
        recovery_point=0,
        topic_id=topic_id,
    )
    log.folder.note_unsynced(f"{path}/{files.PARTITION_METADATA}")
    return log
