"""One fetch on its way: read, perhaps wait and read again, answer.

What it finds at once is answered at once. A fetch of very many partitions has turns of the loop, as other
long requests have, and its answer is encoded in a thread.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from headrace.broker.fetch.delayed_fetch import DelayedFetch
from headrace.broker.fetch.read_result import ColdPart, PartitionAnswer, ReadResult
from headrace.broker.fetch.reading import Reader, find, read_some
from headrace.broker.fetch.remote_read import RemoteRead
from headrace.broker.fetch.sessions import FetchContext
from headrace.broker.fetch.watched_partition import (
    WATCHED_BYTES,
    FetchWatcher,
    OneFetchWatcher,
    WatchedPartition,
)
from headrace.broker.requests.leader_endpoints import endpoints_of
from headrace.config.broker_properties.cluster import RACK_AWARE_SELECTOR
from headrace.core.tasks import spawn
from headrace.network.connection import Connection
from headrace.network.response import DelayedResponse, Parts, Response
from headrace.protocol.fetch_codec import (
    FIRST_WITH_ENDPOINTS,
    FetchedPartition,
    FetchRequestView,
    Topic,
    encode_fetch_response,
)
from headrace.protocol.offset_timestamps import DEBUGGING_CONSUMER

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext
    from headrace.protocol.node_endpoints import Endpoint

READ_COMMITTED: Final = 1
FIRST_WITH_RACK: Final = 11
PROBED_ROUNDS: Final = 4
MOST_ROUNDS: Final = 8
"""A look-up may lead from one cold place to the next; what it does not reach is left for the next fetch."""
AT_ONCE: Final = 500
"""Partitions. They take some ten milliseconds."""
READ_TOGETHER: Final = 20


class Fetching:
    """One request on its way: read, perhaps wait and read again, answer."""

    __slots__ = (
        "_connection",
        "_context",
        "_correlation_id",
        "_fetch_context",
        "_most_bytes",
        "_reader",
        "_request",
        "_rounds",
        "_version",
        "is_long",
    )

    def __init__(
        self,
        context: RequestContext,
        version: int,
        correlation_id: int,
        request: FetchRequestView,
        fetch_context: FetchContext,
        connection: Connection,
        most_bytes: int,
        is_denied: bool = False,
    ) -> None:
        self._context = context
        self._version = version
        self._correlation_id = correlation_id
        self._request = request
        self._fetch_context = fetch_context
        self._connection = connection
        self._most_bytes = min(request.max_bytes, context.runtime.config.fetch_max_bytes, most_bytes)
        session = fetch_context.session
        count = (
            len(session.dirty)
            if fetch_context.incremental and session is not None
            else len(fetch_context.wanted)
        )
        self.is_long = count > AT_ONCE
        self._rounds = 0
        """How often it waited for a disk."""
        replica_id = request.replica_id
        rack = request.rack_id
        if rack and context.runtime.config.replica_selector_class != RACK_AWARE_SELECTOR:
            rack = ""
        self._reader = Reader(
            replica_id,
            request.replica_epoch,
            self._most_bytes,
            request.isolation_level == READ_COMMITTED,
            version >= FIRST_WITH_RACK or replica_id == DEBUGGING_CONSUMER,
            fetch_context.incremental,
            rack,
            context.runtime.clock.monotonic() if replica_id >= 0 else 0.0,
            context.replicas.throttles.leader if replica_id >= 0 else None,
            connection.rights if replica_id < 0 else None,
        )
        self._reader.is_denied = is_denied

    @property
    def min_bytes(self) -> int:
        """Never more than may be answered: it would be waited for in vain."""
        return min(self._request.min_bytes, self._most_bytes)

    def answer(self, pending: DelayedResponse | None = None) -> Response:
        """At once, or by `pending`, or by a new one."""
        if self.is_long:
            pending = pending or DelayedResponse(exclusive=True)
            self._begin_turns(pending, may_wait=True)
            return pending
        result = self._read()
        if result.cold is not None:
            return self._bring(result, pending or DelayedResponse())
        if self._is_enough(result) or self._lacks_memory():
            return self._encode(result)
        return self._wait(self._interest(), result, pending)

    def _is_enough(self, result: ReadResult) -> bool:
        return (
            result.total_bytes >= self.min_bytes
            or result.must_answer
            or self._request.max_wait_ms <= 0
            or not self._fetch_context.wanted
        )

    def _lacks_memory(self) -> bool:
        """For a fetch without a session that would wait."""
        fetch_context = self._fetch_context
        return fetch_context.session is None and not self._context.runtime.memory.fetch_sessions.has_room(
            len(fetch_context.wanted) * WATCHED_BYTES
        )

    def _wanted(self) -> Collection[WatchedPartition]:
        fetch_context = self._fetch_context
        session, rights = fetch_context.session, self._reader.rights
        if session is not None and rights is not None:
            session.look_at_all_if_changed(rights.class_id)
        if fetch_context.incremental and session is not None:
            return tuple(session.dirty)
        return fetch_context.wanted

    def _read(self) -> ReadResult:
        result = ReadResult()
        read_some(self._context, self._wanted(), self._reader, result)
        return result

    def _interest(self) -> FetchWatcher:
        watcher: FetchWatcher | None = self._fetch_context.session
        if watcher is None:
            watcher = self._one_fetch_watcher()
            for want in self._fetch_context.wanted:
                want.bind(find(self._context, want))  # it was found a moment ago, or nobody would wait
        elif watcher.as_replica:
            # Consumers that read from followers see what is committed there: the followers hear of it soon.
            watcher.hears_commits = self._context.runtime.config.replica_selector_class == RACK_AWARE_SELECTOR
        return watcher

    def _one_fetch_watcher(self) -> OneFetchWatcher:
        wanted = self._fetch_context.wanted
        memory = self._context.runtime.memory.fetch_sessions
        watcher = OneFetchWatcher(self._request.replica_id >= 0, self._reader.read_committed, wanted, memory)
        for want in wanted:
            want.watcher = watcher
        return watcher

    def _wait(
        self, watcher: FetchWatcher, result: ReadResult, pending: DelayedResponse | None
    ) -> DelayedResponse:
        return DelayedFetch(
            watcher,
            self.min_bytes - result.total_bytes,
            self._request.max_wait_ms,
            self._finish,
            self._context.fetches.purgatory,
            pending,
        ).response

    def _finish(self, pending: DelayedResponse) -> None:
        """Read again, and answer with what there is: unless it has to be brought from a disk first."""
        if pending.is_abandoned:
            return
        self._reader.now = self._context.runtime.clock.monotonic()
        if self.is_long:
            self._begin_turns(pending, may_wait=False)
            return
        try:
            result = self._read()
            if result.cold is not None and self._rounds < MOST_ROUNDS:
                self._bring(result, pending)
                return
            parts = self._encode(result)
        except Exception:
            self._connection.close()  # its peer would wait for ever
            raise
        pending.complete(parts)

    def _bring(self, result: ReadResult, pending: DelayedResponse) -> DelayedResponse:
        """Answer when what is cold is in memory and verified."""
        assert result.cold is not None
        self._rounds += 1
        # Memory is short if it is cold still: it is sent as it is, and brought once more while it is sent.
        self._reader.probes = self._rounds < PROBED_ROUNDS
        if any(isinstance(part.read, RemoteRead) for part in result.cold):
            self._bring_in_time(result.cold, pending)
        else:
            self._context.fetches.cold_reads.bring(result.cold, lambda: self._finish(pending))
        return pending

    def _bring_in_time(self, parts: Sequence[ColdPart], pending: DelayedResponse) -> None:
        """From an object store, which may take its time: what is not there by then, the next fetch finds."""
        runtime = self._context.runtime
        is_over = False

        def go_on() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                timer.cancel()
                self._finish(pending)

        def give_up() -> None:
            self._reader.waits_for_store = False
            go_on()

        wait_ms = min(runtime.config.remote_fetch_max_wait_ms, max(self._request.max_wait_ms, 1))
        timer = runtime.timers.after(wait_ms / 1000, "a fetch from the object store", give_up)
        self._context.fetches.cold_reads.bring(parts, go_on)

    # --- of very many partitions ---------------------------------------------------------------------------

    def _begin_turns(self, pending: DelayedResponse, *, may_wait: bool) -> None:
        task = spawn(
            "a long fetch", self._when_admitted(pending, may_wait=may_wait), self._context.runtime.loop
        )
        self._context.in_flight.keep(task)

    async def _when_admitted(self, pending: DelayedResponse, *, may_wait: bool) -> None:
        async with self._context.fetches.wide.admitted(self._connection.is_link):
            if not pending.is_abandoned:
                await self.in_turns(pending, may_wait=may_wait)

    async def in_turns(self, pending: DelayedResponse, *, may_wait: bool) -> None:
        """Each partition is read as it is in its turn, as if several fetches had come one after the other."""
        lone: OneFetchWatcher | None = None
        behind: list[None] = []
        pending.on_overtaken = lambda: behind.append(None)  # it may be sent before the fetch waits
        try:
            if may_wait and self._fetch_context.session is None and not self._lacks_memory():
                lone = self._one_fetch_watcher()  # before it reads, so that nothing happens unheard
            result = await self._read_in_turns(pending)
            if pending.is_abandoned:
                return
            if result.cold is not None and self._rounds < MOST_ROUNDS:
                self._bring(result, pending)
                return
            # A session has no need to wait here: what comes next from it is short.
            if lone is not None and not lone.dirty and not self._is_enough(result):
                self._wait(lone, result, pending)
                lone = None
                if behind and pending.on_overtaken is not None:
                    pending.on_overtaken()
                return
            parts = await self._encode_elsewhere(result)
        except Exception:
            self._connection.close()  # its peer would wait for ever
            raise
        finally:
            if lone is not None:
                lone.on_wait_over()
        pending.complete(parts)

    async def _read_in_turns(self, pending: DelayedResponse) -> ReadResult:
        turns, result = self._context.runtime.turns, ReadResult()
        wanted = list(self._wanted())
        for at in range(0, len(wanted), READ_TOGETHER):
            if turns.is_over:
                await turns.next()
                if pending.is_abandoned:
                    break
                self._reader.now = self._context.runtime.clock.monotonic()
            read_some(self._context, wanted[at : at + READ_TOGETHER], self._reader, result)
        return result

    async def _encode_elsewhere(self, result: ReadResult) -> Parts:
        answers = result.answers
        if self._fetch_context.session is not None:
            answers = self._tell(answers)
        chunks = await self._context.runtime.work_thread.run(self._chunks, answers, self._endpoints(answers))
        return self._assembled(chunks, answers)

    # --- the answer ----------------------------------------------------------------------------------------

    def _encode(self, result: ReadResult) -> Parts:
        answers = result.answers
        if self._fetch_context.session is not None:
            answers = self._tell(answers)
        return self._assembled(self._chunks(answers, self._endpoints(answers)), answers)

    def _chunks(self, answers: list[PartitionAnswer], endpoints: list[Endpoint]) -> list[bytes]:
        """Touches nothing that others may change."""
        chunks, _ = encode_fetch_response(
            self._version,
            self._correlation_id,
            self._by_topic(answers),
            session_id=self._fetch_context.session_id,
            node_endpoints=endpoints,
        )
        return chunks

    def _assembled(self, chunks: list[bytes], answers: list[PartitionAnswer]) -> Parts:
        is_consumer = self._request.replica_id < 0
        parts: Parts = []
        for chunk, answer in zip(chunks, answers, strict=False):
            parts.append(chunk)
            if answer.records is not None:
                parts.append(answer.records)
                if answer.metrics is not None and is_consumer:
                    answer.metrics.bytes_out += answer.records.length
        parts.append(chunks[-1])
        return parts

    def _tell(self, answers: list[PartitionAnswer]) -> list[PartitionAnswer]:
        """Remember what the peer is told, and leave out what it knows if the answer is incremental."""
        fetch_context = self._fetch_context
        assert fetch_context.session is not None
        news = fetch_context.session.dirty
        told = []
        for answer in answers:
            is_news = answer.tell()
            if is_news or not fetch_context.incremental:
                told.append(answer)
            want = answer.want
            if answer.records is not None:
                # Whoever gave data goes to the end, so that a small byte limit starves nobody.
                if want in news:
                    del news[want]
                    news[want] = None
            elif answer.is_exhausted and not self.is_long:  # or records may have come since it was read
                news.pop(want, None)
        return told

    def _endpoints(self, answers: list[PartitionAnswer]) -> list[Endpoint]:
        """Where the leaders are that the answer names."""
        if self._version < FIRST_WITH_ENDPOINTS:
            return []
        leaders = [answer.current_leader[0] for answer in answers if answer.current_leader is not None]
        return endpoints_of(self._context.metadata, leaders, self._connection.listener) if leaders else []

    def _by_topic(self, answers: list[PartitionAnswer]) -> list[tuple[Topic, list[FetchedPartition]]]:
        read_committed = self._reader.read_committed
        topics: list[tuple[Topic, list[FetchedPartition]]] = []
        for answer in answers:
            key = answer.want.key
            topic: Topic = key.topic if key.topic_id is None else key.topic_id
            if not topics or topics[-1][0] != topic:
                topics.append((topic, []))
            topics[-1][1].append(
                FetchedPartition(
                    key.partition,
                    answer.error_code,
                    answer.high_watermark,
                    answer.last_stable_offset,
                    answer.log_start_offset,
                    0 if answer.records is None else answer.records.length,
                    answer.aborted if read_committed and answer.error_code == 0 else None,
                    answer.preferred_replica,
                    answer.diverging,
                    answer.current_leader,
                )
            )
        return topics
