"""A flush in three steps, so that the event loop never waits for the disk.

`DurableLog.take_flush` notes on the loop what has to be synced; `run` does it, in a thread; `done`, on
the loop again, moves the recovery point. Until then nothing that the job covers counts as durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.core.ports import Disk, File
from headrace.log import files
from headrace.log.descriptors import wait_for_descriptors

if TYPE_CHECKING:
    from headrace.log.durable_log import DurableLog
    from headrace.log.manifest import Listing


class FlushJob:
    """One flush of one log. `run` may be called from any thread, everything else belongs to the loop."""

    __slots__ = (
        "_directories",
        "_disk",
        "_files",
        "_listing",
        "_paths",
        "log",
        "offset",
        "truncations",
        "with_indexes",
    )

    def __init__(
        self,
        log: DurableLog,
        disk: Disk,
        open_files: Sequence[File],
        paths: Sequence[str],
        directories: Sequence[str],
        with_indexes: bool,
        listing: Listing | None = None,
    ) -> None:
        self.log = log
        self.offset = log.end_offset
        self.truncations = log.truncations
        self.with_indexes = with_indexes
        """Those of the active segment too, which is about to be sealed."""
        self._disk = disk
        self._files = open_files
        self._paths = paths
        self._directories = directories
        self._listing = listing

    def run(self) -> None:
        """Sync it all. An error is final: it takes the directory offline, and nothing is tried again. Only
        for descriptors it waits."""
        try:
            wait_for_descriptors(self._sync)
        except FileNotFoundError:
            return  # the partition was deleted meanwhile; `done` finds it closed
        except OSError as error:
            doing = f"sync {self.log.topic_partition}"
            raise self.log.directory.fail(error, doing, half_done=True) from error

    def _sync(self) -> None:
        for file in self._files:
            file.sync()
        for path in self._paths:
            files.sync_path(self._disk, path)
        for directory in self._directories:
            self._disk.sync_dir(directory)
        if self._listing is not None:
            self._listing.run()

    def done(self) -> None:
        """After `run` returned. What was truncated since does not become durable by it."""
        if self._listing is not None and self._listing.cold:
            for segment in self.log.segments:
                if segment.base_offset in self._listing.cold:
                    segment.distrust()
        self.log.flushed(self)

    def failed(self) -> None:
        """After `run` raised. The directory is offline already."""
        self.log.flush_failed()
