"""The properties of a topic, each declared once.

A broker property that gives the default of one of these is derived from it by `at_broker_level`, so
that type, bounds, default and meaning are written down a single time.
"""

from __future__ import annotations

import re

from headrace.config.declare import boolean, int32, int64, names, optional_int32, real, text
from headrace.config.property import Property, Status
from headrace.config.values import LONG_MAX

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
LEAST_SEGMENT_BYTES = 1 << 20

_FORK = re.compile(r"[A-Za-z0-9_-]{22}:[0-9]{1,19}(,[0-9]{1,19})*", re.ASCII)
_REPLICA = re.compile(r"[0-9]+:[0-9]+", re.ASCII)


def _gzip_level(level: int) -> str | None:
    return None if level == -1 or 1 <= level <= 9 else "use 1 to 9, or -1 for the library's own choice"


def _moved_replicas(replicas: tuple[str, ...]) -> str | None:
    if all(_REPLICA.fullmatch(item) for item in replicas):
        return None
    return "this is written by self-balancing alone, as partition:broker pairs"


def _throttled_replicas(replicas: tuple[str, ...]) -> str | None:
    if replicas in ((), ("*",)) or all(_REPLICA.fullmatch(item) for item in replicas):
        return None
    return "use * or a list of partition:broker, such as 0:101,1:102"


def _fork_point(value: str) -> str | None:
    if not value or _FORK.fullmatch(value):
        return None
    return "`headrace topic fork` writes it, as the id of a topic and offsets"


CLEANUP_POLICY = names(
    "cleanup.policy",
    ("delete",),
    "What happens to old segments: delete drops them by age and size, compact keeps the last record of "
    "each key. Both may be given; neither keeps everything.",
    allowed=("compact", "delete"),
    synonyms=(("log.cleanup.policy", 1),),
)
COMPRESSION_GZIP_LEVEL = int32(
    "compression.gzip.level",
    -1,
    "Level used where the broker itself compresses with gzip.",
    check=_gzip_level,
    synonyms=(("compression.gzip.level", 1),),
)
COMPRESSION_LZ4_LEVEL = int32(
    "compression.lz4.level",
    9,
    "Level used where the broker itself compresses with lz4.",
    at_least=1,
    at_most=17,
    synonyms=(("compression.lz4.level", 1),),
)
COMPRESSION_TYPE = text(
    "compression.type",
    "producer",
    "Codec of the stored batches. The value producer stores each batch as it came, which is the only one "
    "that never opens a batch.",
    allowed=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    synonyms=(("compression.type", 1),),
)
COMPRESSION_ZSTD_LEVEL = int32(
    "compression.zstd.level",
    3,
    "Level used where the broker itself compresses with zstd.",
    at_least=-131072,
    at_most=22,
    synonyms=(("compression.zstd.level", 1),),
)
DELETE_RETENTION_MS = int64(
    "delete.retention.ms",
    86_400_000,
    "How long a compacted topic keeps the marker of a deleted key, so that a reader that started at the "
    "beginning still sees the deletion.",
    at_least=0,
    synonyms=(("log.cleaner.delete.retention.ms", 1),),
)
FILE_DELETE_DELAY_MS = int64(
    "file.delete.delay.ms",
    60_000,
    "How long the files of a removed segment stay on disk under another name, for readers that still "
    "hold them.",
    at_least=0,
    synonyms=(("log.segment.delete.delay.ms", 1),),
)
FLUSH_MESSAGES = int64(
    "flush.messages",
    LONG_MAX,
    "Sync the log to disk after this many records. The default leaves it to the operating system and to "
    "replication.",
    at_least=1,
    synonyms=(("log.flush.interval.messages", 1),),
)
FLUSH_MS = int64(
    "flush.ms",
    LONG_MAX,
    "Sync the log to disk when its oldest unsynced record is this old.",
    at_least=0,
    synonyms=(("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
)
FOLLOWER_THROTTLED_REPLICAS = names(
    "follower.replication.throttled.replicas",
    (),
    "Replicas whose catching up is throttled at the follower: partition:broker pairs, or * for all.",
    check=_throttled_replicas,
)
HEADRACE_BALANCE_MOVED_REPLICAS = names(
    "headrace.balance.moved.replicas",
    (),
    "Replicas that self-balancing adds just now, as partition:broker pairs. The controller writes it.",
    check=_moved_replicas,
    internal=True,
)
HEADRACE_TIER_FORK = text(
    "headrace.tier.fork",
    "",
    "The topic that this one was made as a fork of, by its id, and the offset of each partition. "
    "`headrace topic fork` writes it when it creates the topic; nothing changes it.",
    check=_fork_point,
    internal=True,
)
INDEX_INTERVAL_BYTES = int32(
    "index.interval.bytes",
    4096,
    "Bytes of log between two entries of the offset index. Smaller finds an offset faster and makes the "
    "index larger.",
    at_least=0,
    synonyms=(("log.index.interval.bytes", 1),),
)
INTERNAL_SEGMENT_BYTES = optional_int32(
    "internal.segment.bytes",
    "Segment size below the ordinary minimum, for tests that need many small segments.",
    internal=True,
)
LEADER_THROTTLED_REPLICAS = names(
    "leader.replication.throttled.replicas",
    (),
    "Replicas whose catching up is throttled at the leader: partition:broker pairs, or * for all.",
    check=_throttled_replicas,
)
LOCAL_RETENTION_BYTES = int64(
    "local.retention.bytes",
    -2,
    "Bytes of a tiered partition that also stay on the broker's disk; -2 means as retention.bytes.",
    at_least=-2,
    synonyms=(("log.local.retention.bytes", 1),),
)
LOCAL_RETENTION_MS = int64(
    "local.retention.ms",
    -2,
    "How long a tiered segment also stays on the broker's disk; -2 means as retention.ms.",
    at_least=-2,
    synonyms=(("log.local.retention.ms", 1),),
)
MAX_COMPACTION_LAG_MS = int64(
    "max.compaction.lag.ms",
    LONG_MAX,
    "A record older than this is compacted even where the log is still clean enough.",
    at_least=1,
    synonyms=(("log.cleaner.max.compaction.lag.ms", 1),),
)
MAX_MESSAGE_BYTES = int32(
    "max.message.bytes",
    1_048_588,
    "The largest record batch that the topic takes, after compression.",
    at_least=0,
    synonyms=(("message.max.bytes", 1),),
)
MESSAGE_TIMESTAMP_AFTER_MAX_MS = int64(
    "message.timestamp.after.max.ms",
    3_600_000,
    "How far ahead of the broker's clock a record's own timestamp may lie. Not used with LogAppendTime.",
    at_least=0,
    synonyms=(("log.message.timestamp.after.max.ms", 1),),
)
MESSAGE_TIMESTAMP_BEFORE_MAX_MS = int64(
    "message.timestamp.before.max.ms",
    LONG_MAX,
    "How far behind the broker's clock a record's own timestamp may lie. Not used with LogAppendTime.",
    at_least=0,
    synonyms=(("log.message.timestamp.before.max.ms", 1),),
)
MESSAGE_TIMESTAMP_TYPE = text(
    "message.timestamp.type",
    "CreateTime",
    "Whose time a record carries: the producer's (CreateTime) or the leader's at the append "
    "(LogAppendTime, which rewrites each batch header).",
    allowed=("CreateTime", "LogAppendTime"),
    synonyms=(("log.message.timestamp.type", 1),),
)
MIN_CLEANABLE_DIRTY_RATIO = real(
    "min.cleanable.dirty.ratio",
    0.5,
    "The part of a compacted log that must be uncompacted before the cleaner takes it.",
    at_least=0,
    at_most=1,
    synonyms=(("log.cleaner.min.cleanable.ratio", 1),),
)
MIN_COMPACTION_LAG_MS = int64(
    "min.compaction.lag.ms",
    0,
    "A record younger than this is never compacted away.",
    at_least=0,
    synonyms=(("log.cleaner.min.compaction.lag.ms", 1),),
)
MIN_INSYNC_REPLICAS = int32(
    "min.insync.replicas",
    1,
    "How many replicas must be in sync for a produce with acks=all to be taken.",
    at_least=1,
    synonyms=(("min.insync.replicas", 1),),
)
PREALLOCATE = boolean(
    "preallocate",
    False,
    "Reserve the whole segment on disk when it is created.",
    status=Status.LATER,
    synonyms=(("log.preallocate", 1),),
)
REMOTE_LOG_COPY_DISABLE = boolean(
    "remote.log.copy.disable",
    False,
    "Stop copying a tiered topic's segments to the object store and keep what is there readable.",
)
REMOTE_LOG_DELETE_ON_DISABLE = boolean(
    "remote.log.delete.on.disable",
    False,
    "Delete a topic's data in the object store when tiering is switched off for it.",
)
REMOTE_STORAGE_ENABLE = boolean(
    "remote.storage.enable",
    False,
    "Keep old segments in an object store. Needs remote.log.storage.system.enable at the brokers.",
)
RETENTION_BYTES = int64(
    "retention.bytes",
    -1,
    "Size that one partition may reach before its oldest segments are deleted; -1 sets no limit.",
    synonyms=(("log.retention.bytes", 1),),
)
RETENTION_MS = int64(
    "retention.ms",
    168 * HOUR_MS,
    "Age at which a segment is deleted, counted from the newest timestamp inside it; -1 sets no limit.",
    at_least=-1,
    synonyms=(
        ("log.retention.ms", 1),
        ("log.retention.minutes", MINUTE_MS),
        ("log.retention.hours", HOUR_MS),
    ),
)
SEGMENT_BYTES = int32(
    "segment.bytes",
    1 << 30,
    "Size at which a segment file is closed and the next one begun.",
    at_least=LEAST_SEGMENT_BYTES,
    synonyms=(("log.segment.bytes", 1),),
)
SEGMENT_INDEX_BYTES = int32(
    "segment.index.bytes",
    10_485_760,
    "The largest offset index of a segment; a full index closes the segment.",
    at_least=4,
    synonyms=(("log.index.size.max.bytes", 1),),
)
SEGMENT_JITTER_MS = int64(
    "segment.jitter.ms",
    0,
    "Up to this much is taken off segment.ms, by chance, so that segments do not all close at once.",
    at_least=0,
    synonyms=(("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)),
)
SEGMENT_MS = int64(
    "segment.ms",
    168 * HOUR_MS,
    "Age at which a segment that is not full is closed, so that retention and compaction can reach it.",
    at_least=1,
    synonyms=(("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)),
)
UNCLEAN_LEADER_ELECTION_ENABLE = boolean(
    "unclean.leader.election.enable",
    False,
    "Whether a replica that was not in sync may lead when no other is left. It can lose acknowledged "
    "records.",
    synonyms=(("unclean.leader.election.enable", 1),),
)

TOPIC_PROPERTIES: dict[str, Property[object]] = {
    declared.name: declared for declared in tuple(globals().values()) if isinstance(declared, Property)
}
