"""Log directories that fail while a broker runs: who meets the failure reports it, from any thread; the loop
acts on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headrace.broker.cluster.dead_directories import DeadDirectories
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.hosting import Hosting
from headrace.core.errors import StorageError
from headrace.log.directory import LogDirectory
from headrace.log.manager import LogManager

Listener = Callable[[LogDirectory], None]


class LogDirFailures:
    """Invariant: who listens hears of every directory that fails after `logs_are_open`, also of those that
    failed before it listened."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._is_open = False
        self._missed: list[LogDirectory] = []
        self._listener: Listener | None = None

    def report(self, directory: LogDirectory, error: StorageError) -> None:
        self._runtime.loop.call_soon_threadsafe(partial(self._on_loop, directory, error))

    def logs_are_open(self) -> None:
        """What failed until now counts as absent: the broker registers with the directories that work."""
        self._is_open = True

    def listen(self, listener: Listener) -> None:
        self._listener = listener
        missed, self._missed = self._missed, []
        for directory in missed:
            listener(directory)

    def _on_loop(self, directory: LogDirectory, error: StorageError) -> None:
        self._runtime.log.error("log directory offline", directory=directory.path, error=str(error))
        if self._listener is not None:
            self._listener(directory)
        elif self._is_open:
            self._missed.append(directory)


class LogDirFailureHandler:
    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataCache,
        logs: LogManager,
        hosting: Hosting,
        dead: DeadDirectories,
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._logs = logs
        self._hosting = hosting
        self._dead = dead

    def on_failed(self, directory: LogDirectory) -> None:
        """What is left of the broker goes on, if it can follow the metadata."""
        if not self._logs.online():
            self._runtime.give_up(StorageError("every log directory is offline"))
            return
        self._hosting.on_directory_failed(directory)
        if directory.path == self._metadata.partition.log.directory.path:
            failure = directory.failure
            self._runtime.give_up(StorageError(f"the directory of the metadata is offline: {failure}"))
        elif not self._runtime.is_standalone:
            self._dead.report(directory.uuid)
