"""One partition of an internal topic on this broker, and the shard on it while this broker leads it.

A decision's records are replayed at once and written at the end of the turn, so that a turn is one batch.
Where no other replica is waited for, the first of a turn is written before it is replayed. What is answered
is held until the high watermark has passed everything that the shard has written so far. If the leadership is
lost before that, everything that is held is refused and the shard is thrown away. So nothing is ever taken
back: state that is not committed is told to nobody, and ends with the leadership.

What only reads waits for nothing, so that the log cannot fence it: a broker that stood still and does not
know yet that another leads would tell what was true before. It tells only while it is current.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from headrace.broker.coordinators.loading import ShardLoading
from headrace.broker.coordinators.shard_host import ShardHost
from headrace.broker.coordinators.shard_terms import Terms
from headrace.broker.coordinators.timers import ShardTimers
from headrace.broker.coordinators.writer import Producer, ShardWriter
from headrace.coordinators.decision import PARKED, Decision
from headrace.coordinators.shard import Operation, Shard, TimerOperation
from headrace.core.completion import Completion
from headrace.core.errors import (
    CoordinatorLoading,
    CoordinatorNotAvailable,
    HeadraceError,
    NotCoordinator,
    NotEnoughReplicas,
)
from headrace.core.failures import report
from headrace.core.timers import Timer
from headrace.network.event_loop import deferrer_of
from headrace.protocol.records import NewRecord
from headrace.replication.partition import Partition

S = TypeVar("S", bound=Shard)

NOBODY: Final = -1
RETRY_SECONDS: Final = 1.0
"""When a timer's decision cannot be written, because replicas are missing, it is tried again."""


class DeferredEvent(NamedTuple):
    end: int
    """What must be committed first."""
    completion: Completion[Any] | None
    response: Any
    error: Exception | None
    answers: Sequence[tuple[Completion[Any], object]]
    effects: Sequence[object]


class HostedShard(Generic[S]):
    """Watches its partition for as long as that is hosted here."""

    def __init__(self, host: ShardHost, partition: Partition, terms: Terms[S]) -> None:
        self._host = host
        self._runtime = host.runtime
        self._node = host.node
        self._loop = host.runtime.loop
        # Behind what epoll reported with the request: a turn of the event loop costs more than the append.
        self._defer = deferrer_of(host.runtime.loop)
        self.partition = partition
        self._terms = terms
        self._writer = ShardWriter(host.runtime.clock, host.flusher, partition, terms.compression)
        self.epoch = NOBODY
        """The leader epoch that the shard belongs to, also while it is loading."""
        self.shard: S | None = None
        """There while it may be asked."""
        self._timers: ShardTimers | None = None
        self._loading: ShardLoading[S] | None = None
        self._deferred: deque[DeferredEvent] = deque()
        self._parked: dict[Completion[Any], None] = {}
        self._flush_is_due = False
        self._settling_is_due = False
        self._commit_timeout: Timer | None = None
        self._stopped = False
        partition.watch(self)
        self.on_change()

    # --- asking ------------------------------------------------------------------------------------------

    def ask(self, operation: Operation[S], producer: Producer | None, writes: bool) -> Completion[Any]:
        completion: Completion[Any] = Completion()
        shard = self.shard
        if shard is None:
            completion.fail(self._why_not())
        elif writes and self.partition.is_under_min_isr:
            completion.fail(CoordinatorNotAvailable(f"{self.partition.topic_partition} lacks replicas"))
        else:
            now_ms = self._runtime.clock.wall_ms()
            self._execute(lambda: operation(shard, completion, now_ms), completion, producer, now_ms)
        return completion

    def _why_not(self) -> HeadraceError:
        name = self.partition.topic_partition
        if self.epoch == NOBODY:
            return NotCoordinator(f"this broker does not lead {name}")
        return CoordinatorLoading(f"{name} is being read") if self._loading is None else self._loading.refusal

    def _execute(
        self,
        decide: Callable[[], Decision[Any]],
        completion: Completion[Any] | None,
        producer: Producer | None,
        now_ms: int,
    ) -> None:
        before, shard = self._writer.end, self.shard
        try:
            decision = decide()
            if decision.records:
                self._write(decision, producer, now_ms)
        except Exception as error:
            if not isinstance(error, HeadraceError) or (self._writer.end != before and self.shard is shard):
                self._on_mistake(error, before)
            elif not self._node.is_current:
                error = _not_current()  # also a refusal tells what is known
            self._hold(DeferredEvent(self._writer.end, completion, None, error, (), ()))
            return
        response = decision.response
        if response is PARKED:
            if completion is not None:
                self._parked[completion] = None
                completion = None
        elif completion is not None and not decision.records:
            if not decision.reveals:
                completion.complete(response)
                completion = None
            elif not self._node.is_current:
                completion.fail(_not_current())
                completion = None
        end, follows = self._writer.end, decision.answers or decision.effects
        if follows and self._flush_is_due and not self._deferred and end <= self._committed():
            # It was written at once. What follows from it may ask this shard again: that is a later step.
            self._deferred.append(DeferredEvent(end, None, None, None, decision.answers, decision.effects))
            if completion is not None:
                completion.complete(response)
        elif completion is not None or follows:
            self._hold(DeferredEvent(end, completion, response, None, decision.answers, decision.effects))

    def _on_mistake(self, error: Exception, before: int) -> None:
        """Ours. A record that was half replayed leaves a state that nobody knows: it is read again."""
        name, text = str(self.partition.topic_partition), repr(error)
        self._runtime.log.error("coordinator operation failed", partition=name, error=text, exc_info=error)
        if self._writer.end != before:
            self._flush()
            self._begin_anew(CoordinatorLoading(f"{self.partition.topic_partition} is read again"))

    def _write(self, decision: Decision[Any], producer: Producer | None, now_ms: int) -> None:
        shard, writer, records = self.shard, self._writer, decision.records
        encoded = writer.encode(records, now_ms)
        if writer.has_pending and (producer is not None or not writer.fits(encoded)):
            self._flush()
            if self.shard is not shard:
                raise self._why_not()
        assert shard is not None
        if producer is not None:
            try:
                offset = writer.append_transactional(encoded, producer)
            except NotEnoughReplicas as error:
                raise CoordinatorNotAvailable(str(error)) from None
            for record in records:
                shard.replay_transactional(record, offset, now_ms, producer[0])
                offset += 1
            self._settle()
            return
        if self._flush_is_due:
            offset = writer.add(encoded)
        else:
            self._flush_is_due = True
            self._defer(self._end_turn)
            if self._deferred or not self.partition.commits_alone:
                offset = writer.add(encoded)
            else:
                offset = self._append_now(encoded)
        for record in records:
            shard.replay(record, offset, now_ms)
            offset += 1

    def _append_now(self, encoded: Sequence[NewRecord]) -> int:
        """Before anything is replayed. If it cannot be written, somebody else may have written."""
        try:
            return self._writer.append_now(encoded)
        except HeadraceError as error:
            if not isinstance(error, NotEnoughReplicas):
                self._throw_away(error)
            raise CoordinatorNotAvailable(str(error)) from None

    def _end_turn(self) -> None:
        self._flush_is_due = False
        self._flush()

    def _flush(self) -> None:
        """Write what was decided in this turn. If it cannot be written, the state is ahead of the log, so it
        is thrown away and read again."""
        try:
            self._writer.flush()
        except HeadraceError as error:
            self._throw_away(error)
        else:
            self._settle()

    def _throw_away(self, error: HeadraceError) -> None:
        name = str(self.partition.topic_partition)
        self._runtime.log.warning("coordinator records not written", partition=name, error=str(error))
        self._begin_anew(CoordinatorNotAvailable(str(error)))

    def append_marker(self, batch: bytearray, producer: Producer, *, committed: bool) -> Completion[None]:
        """Append the control batch that ends a producer's transaction, behind all that was decided before."""
        completion: Completion[None] = Completion()
        self._flush()
        try:
            if self.shard is None:
                self._writer.begin()  # the loader will come to it
            self._writer.append_sealed(batch, 1)
            if self.shard is not None:
                self.shard.replay_end(*producer, committed=committed)
        except HeadraceError as error:
            completion.fail(error)
        else:
            self._hold(DeferredEvent(self._writer.end, completion, None, None, (), ()))
            self._settle()
        return completion

    # --- holding -----------------------------------------------------------------------------------------

    def _hold(self, held: DeferredEvent) -> None:
        if not self._deferred and held.end <= self._committed():
            self._finish(held)
            return
        self._deferred.append(held)
        if self._commit_timeout is None:
            self._start_commit_timeout()

    def _settle(self) -> None:
        """Tell those who wait for nothing any more. Telling may add others, behind them."""
        queue = self._deferred
        while queue and queue[0].end <= self._committed():
            self._finish(queue.popleft())

    def _committed(self) -> int:
        """Up to where what this shard has written is committed. Not what it has not written yet, though
        somebody else's records may lie there: the next flush will notice."""
        return min(self.partition.high_watermark, self._writer.written_end)

    def _finish(self, held: DeferredEvent) -> None:
        if held.completion is not None:
            if held.error is not None:
                held.completion.fail(held.error)
            else:
                held.completion.complete(held.response)
        for completion, answer in held.answers:
            self._parked.pop(completion, None)
            completion.complete(answer)
        if held.effects:
            index, epoch = self.partition.topic_partition.partition, self.epoch
            for effect in held.effects:
                try:
                    self._terms.on_effect(index, epoch, effect)
                except Exception as error:  # of this one: whoever is held behind it is answered
                    report(f"an effect of {self.partition.topic_partition}", error)

    def _start_commit_timeout(self) -> None:
        end = self._writer.end
        self._commit_timeout = self._runtime.timers.after(
            self._terms.commit_timeout_seconds, "a commit timeout", lambda: self._on_commit_timeout(end)
        )

    def _on_commit_timeout(self, end: int) -> None:
        """What has waited since before this timer was set is refused. It may still become true, and its
        effects follow if it does."""
        self._commit_timeout = None
        late = CoordinatorNotAvailable("the replicas did not have it in time")
        for held in list(self._deferred):
            if held.end > end:
                break
            if held.completion is not None:
                held.completion.fail(late)
            for completion, _ in held.answers:
                self._parked.pop(completion, None)
                completion.fail(late)
        if self._deferred and self._commit_timeout is None:
            self._start_commit_timeout()

    # --- the partition -----------------------------------------------------------------------------------

    def on_append(self, size: int) -> None:
        """Only committed records matter here."""

    def on_commit(self, size: int) -> None:  # noqa: ARG002 - a watcher has this shape
        if self._deferred and not self._settling_is_due and not self._writer.is_appending:
            # Not from in here: whoever is answered may append at once, in the middle of a follower's fetch,
            # which would not notice and wait. Our own appends are looked at when they have returned.
            self._settling_is_due = True
            self._defer(self._settle_in_turn)

    def on_step_back(self) -> None:
        """Nobody reads here as a replica."""

    def _settle_in_turn(self) -> None:
        self._settling_is_due = False
        self._settle()

    def on_change(self) -> None:
        leads = self.partition.is_leader and not self._stopped
        if leads and self.partition.leader_epoch == self.epoch:
            return
        if self.epoch != NOBODY:
            self._unload(NotCoordinator(f"this broker no longer leads {self.partition.topic_partition}"))
        if leads and self.epoch == NOBODY:
            self._load()

    @property
    def parked_count(self) -> int:
        """Requests that wait for what others do, as members do for each other."""
        return len(self._parked)

    def stop(self) -> None:
        """The broker stops, or hosts the partition no longer: write what is decided, refuse what is held."""
        self._flush()
        self._stopped = True
        self.on_change()
        self.partition.unwatch(self)

    def _begin_anew(self, error: HeadraceError) -> None:
        self._unload(error)
        self.on_change()

    def _unload(self, error: HeadraceError) -> None:
        self.epoch = NOBODY
        self.shard = None
        if self._loading is not None:
            self._loading.cancel()
            self._loading = None
        if self._timers is not None:
            self._timers.stop()
            self._timers = None
        if self._commit_timeout is not None:
            self._commit_timeout.cancel()
            self._commit_timeout = None
        self._writer.begin()
        held, self._deferred = self._deferred, deque()
        parked, self._parked = self._parked, {}
        for each in held:
            if each.completion is not None:
                each.completion.fail(error)
        for completion in parked:
            completion.fail(error)

    # --- loading -----------------------------------------------------------------------------------------

    def _load(self) -> None:
        self.epoch = self.partition.leader_epoch
        self._loading = ShardLoading(
            self._host, self.partition, self._terms.kinds, self._new_shard, self._on_loaded
        )

    def _new_shard(self) -> S:
        if self._timers is not None:
            self._timers.stop()
        timers = self._timers = ShardTimers(self._runtime.timers, self._on_due)
        return self._terms.factory(timers, self.partition.topic_partition.partition, self.epoch)

    def _on_loaded(self, shard: S) -> None:
        self._loading = None
        self._writer.begin()
        self.shard = shard
        now_ms = self._runtime.clock.wall_ms()
        self._execute(lambda: shard.on_loaded(now_ms), None, None, now_ms)

    def _on_due(self, name: object, operation: TimerOperation) -> None:
        if self.shard is None:
            return
        if self.partition.is_under_min_isr and self._timers is not None:
            # Under its own name: a heartbeat that comes meanwhile moves the end of the session as ever.
            self._timers.set(name, RETRY_SECONDS * 1000, operation)
            return
        now_ms = self._runtime.clock.wall_ms()
        self._execute(lambda: operation(now_ms), None, None, now_ms)


def _not_current() -> CoordinatorNotAvailable:
    """Not NotCoordinator, which whoever lists groups takes for "another broker has them"."""
    return CoordinatorNotAvailable("this broker has not heard for a while who leads what")
