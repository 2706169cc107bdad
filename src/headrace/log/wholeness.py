"""What a log claims to hold, and the checks that its files hold all of it.

A replica that has lost a file must not be believed: as a leader it would tell the others where the log begins
or ends, and they would delete good copies on its word. So a log is opened only if its files cover, without a
gap, everything from the log start to what was promised. Otherwise it is CorruptLog, with the files untouched.

Every switch of `Wholeness` is on, always. They exist so that a test can turn one off and see the loss.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, NamedTuple
from uuid import UUID

from headrace.core.errors import CorruptLog
from headrace.core.ids import NO_TOPIC_ID
from headrace.log.claims_file import FirstBatch
from headrace.log.side_files import SideFiles

_NEXT: Final = "The files are left as they are; restore them from a replica or a backup"


@dataclass(frozen=True, slots=True)
class Wholeness:
    first_segment: bool = True
    """The first segment begins at or before the log start."""
    gaps: bool = True
    """Each segment begins where the one before it ends."""
    checkpoint_ahead: bool = True
    """No recovery point, high watermark or log start lies beyond the end of the files."""
    manifest: bool = True
    """Every sealed segment that the manifest lists is there, with its size and content."""
    start_before_files: bool = True
    """A log start is durable before the files below it go."""
    proven_start: bool = True
    """A log start is believed only from a file with a checksum, or if two files agree on it."""
    first_batch: bool = True
    """The segment that was active begins with the batch that it began with."""
    torn_only: bool = True
    """A process that is killed leaves half of its last batch behind, and no other damage."""
    freshness: bool = True
    """A directory that is older than what the cluster has heard of it is not vouched for."""
    side_files: bool = True
    """An index of aborted transactions, or a snapshot of producers, is believed if it is the one that was
    noted."""
    folders: bool = True
    """A replica whose folder is not there is lost, and not one that has nothing yet."""


ALL_ON: Final = Wholeness()
ALL_OFF: Final = Wholeness(**{field.name: False for field in fields(Wholeness)})
"""For a log that another program wrote, and for a loss that a person has accepted."""


class Claims(NamedTuple):
    """What the checkpoints say of a log that is about to be opened."""

    recovery_point: int = 0
    """Everything below it was synced; 0 if that is not known."""
    log_start_offset: int = 0
    high_watermark: int = 0
    lost_nothing: bool = False
    """The last stop was clean, or the host has stayed up since: whatever was written is still there."""
    start_is_proven: bool = True
    """The log start comes from a file with a checksum."""
    first_batch: FirstBatch | None = None
    """Of the segment that was active when this was last written."""
    was_closed: bool = False
    """It was written when the log was closed: what it does not say was not there."""
    side: SideFiles = SideFiles()
    """Beside the last segment, when the log was closed."""
    topic_id: UUID = NO_TOPIC_ID
    has_doubts: bool = False
    """It is a copy of a log of which a part is in doubt (rule 13)."""

    @property
    def proven_topic_id(self) -> UUID:
        """NO_TOPIC_ID where nothing says that the files are those that the id was written of."""
        return self.topic_id if self.first_batch is not None or self.was_closed else NO_TOPIC_ID


class FileFault(NamedTuple):
    path: str
    problem: str


def missing_first(path: str, first: int, log_start: int) -> CorruptLog:
    return CorruptLog(
        f"{path} begins with segment {first}, but the log starts at offset {log_start}: a segment file is"
        f" missing. {_NEXT}"
    )


def missing_all(path: str) -> CorruptLog:
    return CorruptLog(f"{path} has no segment, but records had been written to it. {_NEXT}")


def missing_between(path: str, end: int, following: int) -> CorruptLog:
    return CorruptLog(
        f"{path}: no segment holds the offsets from {end} to {following}: a segment file is missing, or was"
        f" cut. {_NEXT}"
    )


def of_another(path: str, said: str) -> CorruptLog:
    return CorruptLog(f"{path} holds the files of {said}. {_NEXT}")


def changed(fault: FileFault) -> CorruptLog:
    return CorruptLog(f"{fault.path}: {fault.problem}. {_NEXT}")


def missing_end(path: str, end: int, promised: int, what: str) -> CorruptLog:
    return CorruptLog(
        f"{path} ends at offset {end}, but {what} is {promised}: the end of the log is missing. {_NEXT}"
    )
