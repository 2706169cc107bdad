"""The offsets of a query in a consumer group, so that whatever shows the lag of groups shows the query's.

The checkpoint is the truth; the group follows it and is never ahead of it. A commit that fails is made up for
by the next: no query stops because of it. Only the first one must not be refused, so that a group that cannot
be written to is noticed when the query starts.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from headrace.spark.lake.checkpoint import Offsets, parse_offsets
from headrace.spark.source.brokers import Brokers, BrokersFailed
from headrace.spark.source.options import SourceRefused
from headrace.spark.source.rewind import warning

_TIMEOUT_MS: Final = 15_000
#: Brokers forget the offsets of a group without members, by default after seven days.
_AGAIN_SECONDS: Final = 600.0
#: Errors of Kafka's client that another attempt may cure.
_PASSING: Final = frozenset(
    (
        "CoordinatorLoadInProgressException",
        "CoordinatorNotAvailableException",
        "DisconnectException",
        "NetworkException",
        "NotCoordinatorException",
        "TimeoutException",
    )
)
_log = logging.getLogger(__name__)


class Wanted(NamedTuple):
    offsets: Offsets
    ids: Mapping[str, str]


class GroupCommits:
    """Commits in a thread of its own: a coordinator that does not answer holds up no batch."""

    def __init__(self, brokers: Brokers, group: str) -> None:
        self._brokers = brokers
        self._group = group
        self._changed = threading.Condition()
        self._wanted: Wanted | None = None
        self._committed: Offsets | None = None
        self._committed_at = 0.0
        self._busy = False
        self._failing = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def done(self, offsets: Offsets, ids: Mapping[str, str]) -> None:
        """Everything before these was read, and Spark has committed the batches. `ids` are the topics that
        this is true of. The first call waits.
        """
        if self._thread is None:
            self._first(Wanted(offsets, ids))
            self._thread = threading.Thread(target=self._work, name="headrace-commits", daemon=True)
            self._thread.start()
            return
        with self._changed:
            fresh = time.monotonic() - self._committed_at < _AGAIN_SECONDS
            if offsets == self._committed and fresh and self._wanted is None:
                return
            self._wanted = Wanted(offsets, ids)
            self._changed.notify_all()

    def flush(self, seconds: float) -> None:
        """Wait until the last offsets are committed, or could not be."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted is None and not self._busy, seconds)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_TIMEOUT_MS / 1000)

    def _first(self, wanted: Wanted) -> None:
        try:
            self._commit(wanted)
        except BrokersFailed as error:
            if error.kind not in _PASSING:
                raise SourceRefused(
                    f"{error}. Only this query may commit to its group: choose a name that no consumer uses, "
                    "and let the user write to it"
                ) from None
            self._warn(error)

    def _commit(self, wanted: Wanted) -> None:
        """A topic that was made anew meanwhile has the group at its beginning: nothing of it was read."""
        there = self._brokers.topic_ids()
        # A topic that is not known yet is taken as it is, as in a checkpoint that the bare connector made.
        known = {**there, **wanted.ids}
        same = {each: at for each, at in wanted.offsets.items() if there.get(each[0]) == known.get(each[0])}
        if same:
            # Told of only when it is done: a group that may not be written to is not set back.
            before = self._brokers.committed(self._group) if self._committed is None else {}
            self._brokers.commit(self._group, same, _TIMEOUT_MS)
            if told := warning(self._group, before, same):
                _log.warning("%s", told)
        self._committed, self._committed_at = wanted.offsets, time.monotonic()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._wanted is not None)
                if self._wanted is None:
                    return
                wanted, self._wanted, self._busy = self._wanted, None, True
            try:
                self._commit(wanted)
                self._failing = False
            except Exception as error:
                # Whatever it is: without this thread the group would stand still, and nobody would know.
                self._warn(error)
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()

    def _warn(self, error: Exception) -> None:
        if not self._failing:
            known = isinstance(error, BrokersFailed)
            _log.warning(
                "%s; the query goes on, and the next batch commits its offsets too",
                error if known else f"no offsets could be committed to group {self._group}",
                exc_info=None if known else error,
            )
        self._failing = True


class ProgressListener(StreamingQueryListener):
    """Tells of the batches of one source as soon as Spark has committed them, and of the query's end."""

    def __init__(
        self, source: str, run: str, committed: Callable[[Offsets], None], ended: Callable[[], None]
    ) -> None:
        self._source = source
        self._run = run
        self._committed = committed
        self._ended = ended

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  Spark's name
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  Spark's name
        for source in event.progress.sources:
            if source.description == self._source and source.endOffset:
                self._committed(parse_offsets(source.endOffset))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802  Spark's name
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  Spark's name
        if str(event.runId) == self._run:
            self._ended()
