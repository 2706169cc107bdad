"""The moment in which a replica changes its log directory: the future folder gets the partition's name.

Four steps, and the log is closed to everybody who writes from the first to the last:

1. `run`, in a thread: the rest is copied and synced, the folder gets its name, and it is opened as a start
   would open it. From here on both directories have a folder of that name; they hold the same.
2. `switch`, on the loop: the old folder becomes `-delete`, and the log goes on with the new files.
3. `settle`, in a thread: the new name of the old folder is synced.
4. `done`, on the loop: the log is open again.

So nothing is appended before the old folder is gone for good: whichever of both a start finds, alone or
beside the other, holds everything, and is the later one from then on (marker.py). Readers are served from the
old files until the second step.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from headrace.core.errors import CorruptLog, NotLeader, StorageError
from headrace.log import files, producer_snapshot
from headrace.log.claims_file import Claimed
from headrace.log.moving import marker, start
from headrace.log.moving.future import Ending, FutureFolder
from headrace.log.moving.plan import take_plan
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import open_log
from headrace.log.wholeness import Claims

if TYPE_CHECKING:
    from headrace.log.manager import LogManager


class ReplicaSwap:
    """Made on the loop, where it closes the log. Implements `segment_chain.Truncation`."""

    __slots__ = (
        "_claimed",
        "_ending",
        "_future",
        "_is_named",
        "_manager",
        "_moved",
        "_now_ms",
        "_old_path",
        "_opened",
        "_path",
        "_plan",
        "failure",
        "lock",
        "log",
        "source",
    )

    def __init__(
        self, manager: LogManager, log: PartitionLog, future: FutureFolder, high_watermark: int, now_ms: int
    ) -> None:
        log.require_open()
        self.log = log
        self.source = log.directory
        self.failure: CorruptLog | None = None
        self.lock = Lock()
        """Held while the new folder gets its name: whoever deletes the log holds it too."""
        self._manager = manager
        self._future = future
        self._now_ms = now_ms
        self._path = f"{future.directory.path}/{log.topic_partition}"
        self._old_path = ""
        self._opened: PartitionLog | None = None
        self._is_named = False
        try:
            log.active_segment.flush_indexes(final=True)
        except OSError as error:
            raise log.directory.refuse(error, f"move {log.topic_partition}") from error
        self._plan = take_plan(log)
        self._claimed = Claimed(log.log_start_offset, high_watermark, log.first_batch, topic_id=log.topic_id)
        self._ending = Ending(
            tuple(log.epochs.entries),
            log.folder.jumps,
            producer_snapshot.encode(log.producers.snapshot()),
            marker.Moved(),
        )
        manager.swapping.add(log.topic_partition)
        manager.checkpoints_in(future.directory).kept.add(log.topic_partition)
        log.close_for_move(self)

    # --- the first step, in a thread ---

    def run(self) -> None:
        """Raises StorageError, CorruptLog or NotLeader if the replica cannot be moved. Then it stays where
        it is, and the folder has its name of a future replica again, or goes."""
        try:
            self._fill()
            self._give_name()
            self._open()
        except BaseException:
            self._take_name_back()
            raise

    def _fill(self) -> None:
        future, plan = self._future, self._plan
        before = marker.load(plan.directory.disk, plan.folder)
        moved = before.onward(plan.directory.uuid, future.directory.uuid)
        self._ending = self._ending._replace(moved=moved)
        future.complete(plan, self._ending)
        self._prepare()
        saved = self._manager.checkpoints_in(future.directory)
        try:
            saved.take_over(plan.partition, plan.end_offset, self._claimed)
        except OSError as error:
            raise future.directory.refuse(error, "write its checkpoint") from error

    def _prepare(self) -> None:
        """The marker of the old folder, if that one goes on."""
        source, folder = self._plan.directory, self._plan.folder
        back = self._ending.moved.onward(self._future.directory.uuid, source.uuid)
        try:
            marker.write(source.disk, folder, back, marker.PREPARED)
        except OSError as error:
            raise source.refuse(error, f"write {folder}/{marker.PREPARED}") from error

    def _give_name(self) -> None:
        directory = self._future.directory
        disk = directory.disk
        try:
            with self.lock:
                if self.log.closed:
                    raise NotLeader(f"the log of {self._plan.partition} was closed")
                if disk.exists(self._path):
                    raise StorageError(f"{self._path} is there already: move it away")
                disk.rename(self._future.path, self._path)
                self._is_named = True
            disk.sync_dir(directory.path)
        except OSError as error:
            raise directory.fail(error, f"move {self._plan.partition}", half_done=True) from error

    def _open(self) -> None:
        """By the checks of a start: what it would not believe must not be moved to."""
        plan, claimed = self._plan, self._claimed
        claims = Claims(
            plan.end_offset,
            claimed.log_start_offset,
            claimed.high_watermark,
            lost_nothing=True,
            first_batch=claimed.first_batch,
            has_doubts=not all(source.is_vouched for source in plan.sources),
        )
        opened = self._opened = open_log(
            self._future.directory,
            self._path,
            plan.partition,
            self.log.config,
            claims,
            clean=True,
            now_ms=self._now_ms,
        )
        found = (opened.log_start_offset, opened.end_offset, tuple(opened.epochs.entries))
        if found != (plan.log_start_offset, plan.end_offset, self._ending.epochs):
            raise CorruptLog(f"{self._path} is no copy of {plan.folder}: {found}")

    def _take_name_back(self) -> None:
        """The old folder goes on. It must win at every start from now on."""
        if self._opened is not None:
            self._opened.abandon()
            self._opened = None
        directory, plan = self._future.directory, self._plan
        if not self._is_named:
            self._withdraw()
            return
        disk = directory.disk
        try:
            disk.rename(self._path, self._future.path)
            if directory.is_online:
                disk.sync_dir(directory.path)
                self._is_named = False
                self._withdraw()
                return
        except OSError as error:
            directory.fail(error, f"move {plan.partition} back", half_done=True)
        # Nobody knows which name the disk has. The other folder says that it is the later one.
        try:
            marker.take_prepared(plan.directory.disk, plan.folder)
        except FileNotFoundError:
            return  # it was deleted meanwhile
        except OSError as error:
            plan.directory.fail(error, f"move {plan.partition} back", half_done=True)

    def _withdraw(self) -> None:
        """One that stays says nothing wrong: the next start removes it."""
        source, folder = self._plan.directory, self._plan.folder
        try:
            marker.remove(source.disk, folder, marker.PREPARED)
        except OSError as error:
            source.refuse(error, f"remove {folder}/{marker.PREPARED}")

    # --- the second step, on the loop ---

    def switch(self) -> bool:
        """After `run` returned. False: the replica has gone meanwhile, or its directory has just failed."""
        log, opened, manager = self.log, self._opened, self._manager
        assert opened is not None
        if log.closed or not log.directory.is_online:
            opened.abandon()
            if log.closed:
                self._discard()
            return False
        self._old_path = (
            f"{self.source.path}/{manager.unique_name(log.topic_partition, files.DELETED_DIRECTORY)}"
        )
        try:
            self.source.disk.rename(log.path, self._old_path)
        except OSError as error:
            # It is offline now. The next start finds both folders, and opens the new one.
            self.source.fail(error, f"move {log.topic_partition}", half_done=True)
            opened.abandon()
            return False
        log.move_to(opened)
        return True

    def _discard(self) -> None:
        """The partition was deleted or quarantined: what was copied of it goes."""
        directory, manager = self._future.directory, self._manager
        name = self._plan.partition
        path = f"{directory.path}/{manager.unique_name(name, files.DELETED_DIRECTORY)}"
        try:
            directory.disk.rename(self._path, path)
        except OSError as error:
            directory.fail(error, f"delete {self._path}", half_done=True)
            return
        self._is_named = False
        manager.removals.found(directory, path, self._now_ms)

    # --- the third step, in a thread ---

    def settle(self) -> None:
        """StorageError: nobody knows whether the old folder is gone. Nothing may be appended then."""
        source = self.source
        try:
            source.disk.sync_dir(source.path)
        except OSError as error:
            raise source.fail(error, f"move {self._plan.partition}", half_done=True) from error
        start.forget(self._future.directory, self._path)

    # --- the fourth step, on the loop ---

    def done(self) -> None:
        """Whatever became of it: the log is open again, unless it was closed."""
        log, manager, name = self.log, self._manager, self._plan.partition
        target = self._future.directory
        log.open_again()
        log.update_config(log.config)
        manager.swapping.discard(name)
        if log.directory is target:
            delay = log.config.file_delete_delay_ms
            manager.removals.found(self.source, self._old_path, self._now_ms + delay)
            manager.removals.forget(self.source, name)
            if log.durable_start < log.log_start_offset and not log.closed:
                target.note_raised(log)
        elif not self._is_named:  # else the next start finds it there, and has to know what it holds
            manager.checkpoints_in(target).kept.discard(name)
            manager.removals.forget(target, name)

    def cancel(self) -> None:
        self.done()

    @property
    def has_moved(self) -> bool:
        return self.log.directory is self._future.directory
