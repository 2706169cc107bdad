"""One partition on this broker: which part it plays, and what it does in that part.

Only a committed row changes the part (`assign`). A leader appends and moves the high watermark (leading.py);
a follower copies its leader (copying.py, following.py). Both serve readers up to their own high watermark.

Nothing here waits: whoever has to is told later (waiting.py). Time is an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

from headrace.core.errors import NotEnoughReplicas, NotLeader, OffsetOutOfRange
from headrace.core.ids import TopicPartition
from headrace.log.partition_log import AppendResult, PartitionLog
from headrace.metrics.registry import TopicMetrics
from headrace.protocol.batch import CONTROL_FLAG, BatchHeader
from headrace.protocol.replica_fetch_codec import FetchedPartitionData
from headrace.replication.assignment import NO_LEADER, Assignment, IsrProposal
from headrace.replication.copying import CopyingReplica
from headrace.replication.following import IN_DOUBT, FetchOutcome, FetchPosition, Following
from headrace.replication.high_watermark import committed_bytes, committed_end
from headrace.replication.leading import BrokerState, LeaderTerm, Situation
from headrace.replication.replica import Role
from headrace.replication.safeguards import ALL_ON, Safeguards
from headrace.replication.waiting import EVERYTHING, CommitWaiter, decide, tell_append

ACKS_ALL: Final = -1
NOT_KNOWN: Final = -1


class Partition(CopyingReplica):
    """Invariant: at most one of `_term` and `_following` is there, as `role` says."""

    __slots__ = (
        "_earlier_term",
        "_later",
        "_term",
        "on_disagreement",
        "on_isr_change",
        "on_suspected_corruption",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        log: PartitionLog,
        metrics: TopicMetrics,
        *,
        high_watermark: int | None = None,
        safeguards: Safeguards = ALL_ON,
    ) -> None:
        """`high_watermark`: as it was checkpointed; everything below it was committed once."""
        super().__init__(topic_partition, topic_id, log, metrics, high_watermark, safeguards)
        self.on_isr_change: Callable[[Partition], None] | None = None
        """Called when the ISR may have to change: `proposed_isr` says how."""
        self.on_suspected_corruption: Callable[[Partition, int], object] | None = None
        """Told when a follower cannot use what it is given from an offset on."""
        self.on_disagreement: Callable[[Partition], None] | None = None
        """Told when the leader's log and this one are of different logs, or cannot be compared, as often as
        it is seen."""
        self._term: LeaderTerm | None = None
        self._earlier_term: LeaderTerm | None = None
        self._later: tuple[Assignment, int] | None = None
        """A row that came while the log was being truncated, or moved, and the own id: for `on_truncated`."""
        log.on_synced = self.on_synced

    # --- the part it plays -------------------------------------------------------------------------------

    def assign(self, row: Assignment, local_id: int, now: float) -> None:
        """Play the part that a committed row gives. A new leader epoch is a new term (rule 9)."""
        if row.leader_epoch < self.leader_epoch or row.partition_epoch < self.partition_epoch:
            return  # older than what is known
        is_new_epoch = row.leader_epoch != self.leader_epoch
        if self.log.truncation is not None:
            self._later = row, local_id
            if is_new_epoch:
                self._end_part()
                self._tell_changed()
            return
        same_leader = row.leader == self.leader_id
        self.leader_id = row.leader
        self.leader_epoch = row.leader_epoch
        self.partition_epoch = row.partition_epoch
        self.replicas = row.replicas
        self.isr = row.isr
        if self.is_offline:
            self.resign()
        elif row.leader == local_id:
            term = self._term
            if term is None or is_new_epoch:
                self._begin_term(row, local_id, now)
            else:
                term.on_row(row, now)
            self._advance()
            self._consider_isr()
        elif local_id in row.replicas and row.leader != NO_LEADER:
            if self._following is None or is_new_epoch:
                self._end_part()
                self.role = Role.FOLLOWER
                # Rule 7: the same leader in a new epoch may have come back shorter.
                reconciles = not same_leader or self._safeguards.truncate_on_every_epoch
                self._following = Following(
                    self.log, row.leader, row.leader_epoch, reconciles, self._safeguards
                )
                self._tell_changed()
        else:
            self.resign()

    def _begin_term(self, row: Assignment, local_id: int, now: float) -> None:
        self._end_part()
        self.role = Role.LEADER
        self.is_leader = True
        self._term = LeaderTerm(row, local_id, self.log.end_offset, now, self._safeguards)
        self.log.vouch()  # what a leader has is the log
        self.log.producers.forget_verifications()
        if not self._safeguards.new_term_forgets and self._earlier_term is not None:
            self._term.inherit(self._earlier_term)
        self._tell_changed()

    def resign(self) -> None:
        """Neither lead nor follow. Acknowledgements that are held can no longer be given here."""
        self._later = None
        self._end_part()
        self._tell_changed()

    def _end_part(self) -> None:
        self.role = Role.IDLE
        self.is_leader = False
        self._following = None
        term, self._term = self._term, None
        if term is not None:
            if not self._safeguards.new_term_forgets:
                self._earlier_term = term
            for _, waiter, token in term.delayed.take(EVERYTHING):
                decide(waiter, token, NotLeader(f"this broker no longer leads {self.topic_partition}"))

    @property
    def term(self) -> LeaderTerm | None:
        return self._term

    @property
    def is_under_min_isr(self) -> bool:
        term = self._term
        return term is not None and not term.meets_min_isr(self.log.config.min_insync_replicas)

    @property
    def commits_alone(self) -> bool:
        """No other replica is waited for: an append is committed when it returns, or when it is synced."""
        term = self._term
        return term is not None and not term.counted

    @property
    def knows_the_end(self) -> bool:
        """Rule 5: until the high watermark has reached the start of the epoch, more may be committed than
        this leader knows, and what it calls the end would lie before what others have read."""
        term = self._term
        if term is None or not self._safeguards.read_after_epoch_start:
            return True
        return self.high_watermark >= term.start_offset

    # --- leading -----------------------------------------------------------------------------------------

    def append(
        self,
        batch: bytearray | memoryview,
        header: BatchHeader,
        *,
        acks: int,
        now_ms: int,
        from_client: bool = True,
    ) -> AppendResult:
        """Written, not yet committed: `high_watermark` says, or `await_commit` will.

        What the broker itself has made (not `from_client`) is not asked whether a client may send it.
        """
        term = self._term
        if term is None:
            raise NotLeader(f"this broker does not lead {self.topic_partition}")
        log = self.log
        if acks == ACKS_ALL and not term.meets_min_isr(log.config.min_insync_replicas):
            raise NotEnoughReplicas(
                f"{self.topic_partition} has {term.isr_size} in-sync replicas,"
                f" min.insync.replicas asks for {log.config.min_insync_replicas}"
            )
        result = log.append_as_leader(
            batch, header, leader_epoch=self.leader_epoch, now_ms=now_ms, from_client=from_client
        )
        if self.history is not None:  # the log knows only where the disk begins
            start = self.history.log_start_offset
            result = result._replace(log_start_offset=NOT_KNOWN if start is None else start)
        if self._replica_readers:
            tell_append(self._replica_readers, len(batch))
        if term.counted:
            term.uncommitted_bytes += len(batch)  # not committed before a follower has it
        elif (
            term.isr_size >= log.config.min_insync_replicas
            and log.end_offset - log.synced_offset < log.config.flush_messages
        ):
            # What `_advance` would find, in short: this is every append where there is no other replica.
            self.high_watermark = log.end_offset
            if self._readers or self._replica_readers or self._stable_readers or len(term.delayed):
                self._on_advanced(term, len(batch))
        else:
            term.uncommitted_bytes += len(batch)
            self._advance()
        if header[5] & CONTROL_FLAG:
            log.producers.settle(self.high_watermark)
        return result

    def on_linked_append(self, size: int) -> None:
        """The leader's log was extended by `size` bytes that another cluster has committed (linking.py)."""
        if self._replica_readers:
            tell_append(self._replica_readers, size)
        if self._term is not None:
            self._term.uncommitted_bytes += size
        self._advance()

    def await_commit(self, end_offset: int, waiter: CommitWaiter, token: int = 0) -> None:
        """Tell `waiter` when everything below `end_offset` is committed, or when that cannot be said here."""
        term = self._term
        if term is None:
            waiter.on_decided(token, NotLeader(f"this broker no longer leads {self.topic_partition}"))
        else:
            term.delayed.add(end_offset, waiter, token)
            if end_offset <= self.high_watermark:
                term.acknowledge(self.high_watermark, self.log)

    def on_replica_fetch(
        self, replica_id: int, broker_epoch: int, fetch_offset: int, now: float, log_start_offset: int = -1
    ) -> None:
        """A follower reports its end offset, after `check_replica` and `diverging` let it pass."""
        term = self._term
        if term is None:
            return
        progress = term.follower(replica_id, broker_epoch)
        leader_start, leader_end = self.log.log_start_offset, self.log.end_offset
        if not leader_start <= fetch_offset <= leader_end:
            # It holds something else, or nothing that is still here: that is no progress.
            raise OffsetOutOfRange(f"broker {replica_id} asks {self.topic_partition} from {fetch_offset} on")
        if log_start_offset == IN_DOUBT:
            return
        steps_back = fetch_offset < progress.end_offset and broker_epoch == progress.broker_epoch
        # With a history, what lies before this log was compared as well: `end_offset_for_epoch`.
        compared = leader_start if self.history is None else 0
        caught_up = progress.on_fetch(broker_epoch, fetch_offset, log_start_offset, compared, leader_end, now)
        if steps_back:
            # It is believed: to believe too little is always safe. But whoever has nothing new to say would
            # not say it again, and be kept out of the ISR until the next append.
            for reader in tuple(self._replica_readers):
                reader.on_step_back()
        self._advance()
        if progress.is_stuck and self.on_suspected_corruption is not None:
            self.on_suspected_corruption(self, fetch_offset)
        if term.may_change_isr(progress, self.high_watermark, caught_up):
            self._consider_isr()

    def _advance(self) -> None:
        """Rule 3. The leader's own end counts like that of any other member."""
        term = self._term
        if term is None:
            return
        if self._safeguards.min_isr_for_high_watermark and not term.meets_min_isr(
            self.log.config.min_insync_replicas
        ):
            return
        end = self._own_end()
        if term.counted:
            end = committed_end(end, term.counted)
        before = self.high_watermark
        if end <= before:
            return
        self.high_watermark = end
        size = committed_bytes(term.uncommitted_bytes, end - before, self.log.end_offset - before)
        term.uncommitted_bytes -= size
        self._on_advanced(term, size or 1)  # what lies there since before this term was not counted

    def _on_advanced(self, term: LeaderTerm, size: int) -> None:
        if len(term.delayed):
            term.acknowledge(self.high_watermark, self.log)
        self._tell_committed(size)

    def _own_end(self) -> int:
        """Without what is not synced though it has to be, and nothing at all of a log that is offline."""
        log = self.log
        if log.directory.failure is not None:
            return -1
        if self.must_sync_before_ack and self._safeguards.sync_before_ack:
            return log.synced_offset
        return log.end_offset

    def proposed_isr(self, now: float, lag_seconds: float, broker_state: BrokerState) -> IsrProposal | None:
        """Which ISR to ask the controller for now (rules 4, 10 and 12); None if none, or if one is asked for.

        To be called after `on_isr_change`, and at least twice in `lag_seconds`: that is how laggards are
        found.
        """
        term = self._term
        if term is None or self.is_offline:
            return None
        situation = Situation(self.log.end_offset, self.high_watermark, now, lag_seconds)
        proposal = term.proposed_isr(situation, broker_state)
        self._advance()  # somebody that it waited for may not count any more
        return proposal

    def propose(self, proposal: IsrProposal) -> bool:
        """The proposal is about to be sent. False if it is out of date, and must not be."""
        return self._term is not None and self._term.propose(proposal)

    def proposal_failed(self, proposal: IsrProposal, *, definite: bool) -> None:
        """It was refused for good, or (rule 10) nobody knows: then only a committed row settles it."""
        if self._term is not None:
            self._term.proposal_failed(proposal, definite)
            self._advance()

    def _consider_isr(self) -> None:
        if self.on_isr_change is not None:
            self.on_isr_change(self)

    def on_reconfigured(self) -> None:
        """The log has other settings: with a smaller min.insync.replicas more may be committed at once."""
        self._advance()

    # --- syncing -----------------------------------------------------------------------------------------

    def on_synced(self) -> None:
        """More of the log is on the disk; the log says so itself, whoever asked for the sync."""
        self._advance()

    # --- following ---------------------------------------------------------------------------------------

    def on_fetched(self, sent: FetchPosition, data: FetchedPartitionData, now_ms: int) -> FetchOutcome:
        """The leader's answer to a fetch that said `sent`. Raises StorageError if the disk fails."""
        following = self._following
        if following is None:
            return FetchOutcome.STALE
        outcome = following.apply(sent, data, now_ms)
        if outcome <= FetchOutcome.APPENDED:
            self._on_copied(following, data, outcome)
        elif outcome == FetchOutcome.IN_STORE:
            outcome = self._begin_behind_store()
        elif following.is_at_odds and self.on_disagreement is not None:
            self.on_disagreement(self)
        return outcome

    def on_truncated(self, now: float, now_ms: int) -> None:
        """The log's truncation, or its move, was run. What the metadata said meanwhile holds now."""
        log = self.log
        if log.truncation is not None:
            log.truncation.done()
        if self.history is not None and not self.is_offline:
            self.history.on_truncated()
        later, self._later = self._later, None
        if self.is_offline:
            return
        self.high_watermark = max(min(self.high_watermark, log.end_offset), log.log_start_offset)
        following = self._following
        held = None
        if following is not None:
            following.uncommitted_bytes = 0
            held = following.take_held()
        self._tell_changed()
        if later is not None:
            self.assign(*later, now)
        elif following is not None and held is not None:
            outcome = following.append(held.records, now_ms)
            if outcome <= FetchOutcome.APPENDED:
                self._on_copied(following, held, outcome)

    # --- reading -----------------------------------------------------------------------------------------

    def readable_followers(self, offset: int) -> list[tuple[int, int]]:
        """Members of the ISR that hold `offset`, with their end offsets; none if this is not the leader."""
        term = self._term
        if term is None:
            return []
        return [
            (follower.replica_id, follower.end_offset)
            for follower in term.followers.values()
            if follower.replica_id in self.isr
            and follower.end_offset >= offset
            and max(follower.log_start_offset, 0) <= offset
        ]

    def low_watermark(self, is_alive: Callable[[int], bool]) -> int:
        """The smallest log start of all replicas that are alive: what lies before is gone everywhere.

        A follower that has not said where its log begins holds it at 0.
        """
        start = self.log.log_start_offset if self.history is None else self.history.durable_log_start
        term = self._term
        if term is not None:
            for follower in term.followers.values():
                if follower.log_start_offset < start and is_alive(follower.replica_id):
                    start = max(follower.log_start_offset, 0)
        return start
