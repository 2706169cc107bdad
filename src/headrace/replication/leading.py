"""The term of one leader: what it knows of its followers, who counts for the high watermark, and which ISR it
would like. A term begins with a leader epoch and knows nothing of earlier ones (rule 9).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from headrace.core.errors import NotEnoughReplicasAfterAppend, NotLeader, UnknownLeaderEpoch
from headrace.log.partition_log import PartitionLog
from headrace.replication.assignment import UNKNOWN_BROKER_EPOCH, Assignment, IsrProposal
from headrace.replication.progress import NEVER, FollowerProgress
from headrace.replication.safeguards import Safeguards
from headrace.replication.waiting import DelayedAcknowledgements, decide

BrokerState = Callable[[int], int | None]
"""The broker epoch under which a broker is registered now; None if it may not join an ISR: it is unknown,
fenced or stopping."""


class Situation(NamedTuple):
    """Where the leader's own log is while it looks at its followers."""

    end_offset: int
    high_watermark: int
    now: float
    lag_seconds: float


class LeaderTerm:
    __slots__ = (
        "_joining",
        "_safeguards",
        "_unsettled",
        "began",
        "counted",
        "delayed",
        "epoch",
        "followers",
        "is_new",
        "isr",
        "isr_size",
        "local_id",
        "partition_epoch",
        "proposal",
        "recovering",
        "replica_count",
        "start_offset",
        "uncommitted_bytes",
    )

    def __init__(
        self, row: Assignment, local_id: int, start_offset: int, now: float, safeguards: Safeguards
    ) -> None:
        self._safeguards = safeguards
        self.local_id = local_id
        self.epoch = row.leader_epoch
        self.start_offset = start_offset
        """Where the epoch begins: the log's end when it began."""
        self.began = now
        self.is_new = row.leader_epoch > 0
        """Producers may have batches under way to the last leader. Whoever makes use of it says when not."""
        self.partition_epoch = -1
        self.isr: tuple[int, ...] = ()
        """As committed."""
        self.isr_size = 0
        self.replica_count = 0
        self.recovering = False
        self.followers: dict[int, FollowerProgress] = {}
        """All assigned replicas but the leader, in the order of the assignment."""
        self.proposal: IsrProposal | None = None
        """In flight: one at a time."""
        self._unsettled: dict[int, None] = {}
        """Members of proposals on the present row whose outcome is not known (rule 10)."""
        self._joining: dict[int, None] = {}
        """Replicas that have everything, or nearly: the high watermark waits for them, or it would run away
        under load and they could never be admitted."""
        self.counted: list[FollowerProgress] = []
        """Those that the high watermark waits for."""
        self.delayed = DelayedAcknowledgements()
        self.uncommitted_bytes = 0
        """About how much lies above the high watermark, for those who wait for a number of bytes."""
        self.on_row(row, now)

    # --- the committed row -------------------------------------------------------------------------------

    def on_row(self, row: Assignment, now: float) -> None:
        """A row of this epoch. It settles every proposal that was made on an older one (rule 10)."""
        if row.partition_epoch > self.partition_epoch:
            self.proposal = None
            self._unsettled = {}
        self.partition_epoch = row.partition_epoch
        self.isr = row.isr
        self.isr_size = len(row.isr)
        self.replica_count = len(row.replicas)
        self.recovering = row.recovering
        known = self.followers
        self.followers = {}
        for replica in row.replicas:
            if replica == self.local_id:
                continue
            progress = known.get(replica)
            if progress is None:
                progress = FollowerProgress(replica, now if replica in row.isr else NEVER)
            self.followers[replica] = progress
        self._recount()

    def inherit(self, earlier: LeaderTerm) -> None:
        """Only for a test that switches rule 9 off."""
        for replica, progress in earlier.followers.items():
            if replica in self.followers:
                self.followers[replica].inherit(progress)

    def _recount(self) -> None:
        """Rule 3: the maximal ISR, which is the committed one and whatever may become it."""
        members = dict.fromkeys(self.isr)
        if self._safeguards.maximal_isr:
            if self.proposal is not None:
                members.update(dict.fromkeys(self.proposal.isr))
            members.update(self._unsettled)
        members.update(self._joining)
        self.counted = [self.followers[replica] for replica in members if replica in self.followers]

    def is_counted(self, replica_id: int) -> bool:
        return any(progress.replica_id == replica_id for progress in self.counted)

    def meets_min_isr(self, min_insync_replicas: int) -> bool:
        """A partition with fewer replicas than the minimum needs all of them, as in Kafka."""
        return self.isr_size >= min_insync_replicas or self.isr_size >= self.replica_count

    # --- fetches -----------------------------------------------------------------------------------------

    def follower(self, replica_id: int, broker_epoch: int) -> FollowerProgress:
        """Raises if that replica, or that incarnation of it, must not be heard."""
        progress = self.followers.get(replica_id)
        if progress is None:
            # It may know a newer assignment than this leader: it shall ask again.
            raise UnknownLeaderEpoch(f"broker {replica_id} is no replica here, as far as is known")
        if broker_epoch < progress.broker_epoch and self._safeguards.broker_epoch_admission:
            raise NotLeader(f"broker {replica_id} was restarted since it sent this fetch")
        return progress

    def may_change_isr(self, progress: FollowerProgress, high_watermark: int, caught_up: bool) -> bool:
        """After a fetch: whether a look at the ISR is worth its while. Cheap, and asked often."""
        if progress.replica_id in self.isr or self.proposal is not None:
            return False
        if progress.end_offset < self.start_offset and self._safeguards.epoch_start_admission:
            return False
        if progress.end_offset >= high_watermark:
            return True
        return caught_up and progress.replica_id not in self._joining

    # --- the ISR -----------------------------------------------------------------------------------------

    def proposed_isr(self, situation: Situation, broker_state: BrokerState) -> IsrProposal | None:
        """Drop those who lag, admit those who may (rule 4). None if nothing should change, or not now."""
        if self.proposal is not None:
            return None
        members = []
        for replica in self.isr:
            progress = self.followers.get(replica)
            if progress is None or not progress.lags(
                situation.end_offset, situation.now, situation.lag_seconds
            ):
                members.append(replica)
        self._joining = {}
        for progress in self.followers.values():
            if progress.replica_id in self.isr:
                continue
            registered = broker_state(progress.replica_id)
            if registered is None or not self._may_be_admitted(progress, registered):
                continue
            # One that lags would be dropped by the next look, and so for ever if it cannot get the rest: this
            # log's end may be damaged. Outside the ISR it is an eligible leader, to which this one gives way.
            lags = progress.lags(situation.end_offset, situation.now, situation.lag_seconds)
            if self._has_reached(progress, situation.high_watermark) and not lags:
                members.append(progress.replica_id)
            elif situation.now - progress.caught_up_at >= situation.lag_seconds:
                continue
            # Also of those who may join now: the high watermark must not pass them before that is proposed.
            self._joining[progress.replica_id] = None
        self._recount()
        if tuple(members) == self.isr and not self._holds_strangers():
            return None
        return IsrProposal(
            self.epoch,
            self.partition_epoch,
            tuple(members),
            tuple(self._incarnation(replica, broker_state) for replica in members),
        )

    def _may_be_admitted(self, progress: FollowerProgress, registered: int) -> bool:
        """Rule 4, but for the high watermark, which can be waited for."""
        safeguards = self._safeguards
        if progress.end_offset < 0:
            return False  # it has not fetched in this epoch
        if progress.end_offset < self.start_offset and safeguards.epoch_start_admission:
            return False
        if max(progress.log_start_offset, 0) < progress.unproven_below and safeguards.log_start_admission:
            return False  # below may lie records of an epoch that never committed them
        return progress.broker_epoch == registered or not safeguards.broker_epoch_admission

    def _has_reached(self, progress: FollowerProgress, high_watermark: int) -> bool:
        return progress.end_offset >= high_watermark or not self._safeguards.high_watermark_admission

    def _incarnation(self, replica: int, broker_state: BrokerState) -> int:
        """Rule 12: the one that fetched."""
        progress = self.followers.get(replica)
        if progress is None:
            return UNKNOWN_BROKER_EPOCH
        if not self._safeguards.broker_epoch_admission:
            registered = broker_state(replica)
            return UNKNOWN_BROKER_EPOCH if registered is None else registered
        return progress.broker_epoch

    def _holds_strangers(self) -> bool:
        """A proposal of unknown outcome named somebody who is not wanted any more. The high watermark waits
        for it until a row is committed after it: so one is asked for, even if it says nothing new."""
        return any(replica not in self.isr and replica in self.followers for replica in self._unsettled)

    def propose(self, proposal: IsrProposal) -> bool:
        """It is being sent. False if it was made on a row that is no longer the present one."""
        if self.proposal is not None or proposal.leader_epoch != self.epoch:
            return False
        if proposal.partition_epoch != self.partition_epoch:
            return False
        self.proposal = proposal
        for replica in proposal.isr:
            self._joining.pop(replica, None)
        self._recount()
        return True

    def proposal_failed(self, proposal: IsrProposal, definite: bool) -> None:
        """`definite`: it was refused and can never be committed. Anything else is an unknown outcome."""
        if self.proposal != proposal:
            return  # a committed row has settled it already
        self.proposal = None
        if not definite and self._safeguards.unknown_isr_stays:
            self._unsettled.update(dict.fromkeys(proposal.isr))
        self._recount()

    # --- acknowledgements --------------------------------------------------------------------------------

    def acknowledge(self, high_watermark: int, log: PartitionLog) -> None:
        """Tell those whose batches are committed now."""
        for _, waiter, token in self.delayed.take(high_watermark):
            if self.meets_min_isr(log.config.min_insync_replicas):
                decide(waiter, token, None)
            else:
                late = NotEnoughReplicasAfterAppend(f"{log.topic_partition} lost replicas meanwhile")
                decide(waiter, token, late)
