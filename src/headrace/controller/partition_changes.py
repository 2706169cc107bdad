"""One partition's next row: who leads, who is in sync, who else could lead, and the record that says so.

Every decision about replicas ends here, so that the rules stand in one place:

- The leader is in the ISR. It is the current one while that is possible, else the first of the replicas that
  is in the ISR and alive, else the first eligible one, else the last known leader if nobody else is known to
  hold anything, else, where the topic allows a loss, any replica that is alive.
- Eligible leaders (KIP-966) are replicas that left the ISR while it was below its minimum. The high watermark
  stood still since, so they hold everything that was acknowledged. Once the ISR has its minimum the
  watermark moves on without them, and none is left.
- The leader epoch rises with every new leader and when a replica is taken away; the partition epoch rises
  with every change. A change of the ISR alone leaves the leader epoch as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from headrace.controller.policy import ReplicationPolicy
from headrace.controller.topic_image import KEEP_LEADER, UNASSIGNED_DIRECTORY, Exceptional, TopicImage
from headrace.core.ids import NO_BROKER
from headrace.protocol.stored.partition_change_record import PartitionChangeRecord

RECOVERING = 1
RECOVERED = 0
"""What a PartitionChangeRecord says in its field `leader_recovery_state`."""

_NOBODY: frozenset[int] = frozenset()


class Replicas(NamedTuple):
    """A partition's place: all its replicas, and those of them that are on their way in or out."""

    all: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(broker_id for broker_id in self.all if broker_id not in self.removing)

    @property
    def before(self) -> tuple[int, ...]:
        return tuple(broker_id for broker_id in self.all if broker_id not in self.adding)


class _Choice(NamedTuple):
    leader: int
    isr: tuple[int, ...]
    eligible: tuple[int, ...]
    unclean: bool = False


class PartitionChanges:
    """Changes of one topic's partitions within one decision."""

    __slots__ = ("_longest_first", "_min_isr", "_policy", "_ready", "_topic", "_unclean", "_unfit")

    def __init__(
        self,
        policy: ReplicationPolicy,
        topic: TopicImage,
        *,
        unfit: Collection[int] = _NOBODY,
        ready: int = NO_BROKER,
        unclean: bool | None = None,
        min_isr: int | None = None,
        longest_first: Sequence[int] = (),
    ) -> None:
        """`unfit` may not lead, whatever the image says of them; `ready` is about to be unfenced.
        `longest_first`: replicas by the length of their logs, for an unclean election."""
        self._policy = policy
        self._topic = topic
        self._unfit = unfit
        self._longest_first = longest_first
        self._ready = ready
        self._unclean = policy.allows_unclean(topic.name) if unclean is None else unclean
        self._min_isr = policy.min_insync_replicas(topic.name) if min_isr is None else min_isr

    def change(
        self,
        partition: int,
        *,
        isr: Sequence[int] | None = None,
        incomplete: Collection[int] = _NOBODY,
        place: Replicas | None = None,
        directories: Mapping[int, UUID] | None = None,
        preferred: bool = False,
        recovering: bool | None = None,
        emptied: Collection[int] = _NOBODY,
    ) -> PartitionChangeRecord | None:
        """The record, or None where the row stays as it is.

        `incomplete` are replicas of which it is no longer known that they hold what was acknowledged;
        `emptied` are those on a new directory, which are known to hold nothing.
        """
        topic = self._topic
        rare = topic.exceptional(partition)
        leader = topic.leaders[partition]
        old_isr = topic.isr(partition)
        old_place = Replicas(topic.replicas(partition), rare.adding, rare.removing)
        new_place = old_place if place is None else place
        new_isr = old_isr if isr is None else tuple(isr)
        if new_place.adding or new_place.removing:
            new_place, new_isr = self._completed(partition, leader, new_place, new_isr)
        complete = [each for each in (*old_isr, *rare.elr) if each not in incomplete]
        choice = self._choose(partition, new_place.all, new_isr, complete, preferred)
        record = PartitionChangeRecord(partition_id=partition, topic_id=topic.topic_id)
        if choice.leader != leader or not set(old_place.all) <= set(new_place.all):
            record.leader = choice.leader
        if choice.isr != old_isr:
            record.isr = list(choice.isr)
        if choice.eligible != rare.elr:
            record.eligible_leader_replicas = list(choice.eligible)
        last_known = _last_known(rare, leader, old_isr, choice)
        if emptied:
            # It would be elected with an empty log, and everybody who still has something would cut it off.
            last_known = tuple(each for each in last_known if each not in emptied)
        if last_known != rare.last_known_elr:
            record.last_known_elr = list(last_known)
        recovering = choice.unclean or (rare.recovering if recovering is None else recovering)
        if recovering != rare.recovering:
            record.leader_recovery_state = RECOVERING if recovering else RECOVERED
        if new_place != old_place:
            _say_place(record, old_place, new_place)
        self._say_directories(record, partition, new_place.all, directories)
        return None if says_nothing(record) else record

    def _completed(
        self, partition: int, leader: int, place: Replicas, isr: tuple[int, ...]
    ) -> tuple[Replicas, tuple[int, ...]]:
        """A reassignment ends when everyone who shall stay is in sync, and one of them can lead."""
        target = place.target
        if not target or not set(target) <= set(isr):
            return place, isr
        left = tuple(broker_id for broker_id in isr if broker_id in target)
        if leader >= 0 and leader not in left and not any(self._fit(partition, each) for each in left):
            return place, isr
        return Replicas(target), left

    def _fit(self, partition: int, broker_id: int) -> bool:
        if broker_id in self._unfit:
            return False
        return self._policy.may_lead(self._topic, partition, broker_id, ready=self._ready)

    def _choose(
        self,
        partition: int,
        replicas: tuple[int, ...],
        isr: tuple[int, ...],
        complete: Sequence[int],
        preferred: bool,
    ) -> _Choice:
        leader = self._topic.leaders[partition]
        eligible = self._eligible(replicas, isr, complete)
        if preferred and replicas[0] in isr and self._fit(partition, replicas[0]):
            return _Choice(replicas[0], isr, eligible)
        if leader in isr and leader not in self._unfit:
            return _Choice(leader, isr, eligible)
        for broker_id in replicas:
            if broker_id in isr and self._fit(partition, broker_id):
                return _Choice(broker_id, isr, eligible)
        for broker_id in eligible:
            if self._fit(partition, broker_id):
                return _Choice(broker_id, (broker_id,), self._eligible(replicas, (broker_id,), complete))
        last_known = self._topic.exceptional(partition).last_known_elr
        if not isr and not eligible and len(last_known) == 1:
            (broker_id,) = last_known
            if broker_id in replicas and self._fit(partition, broker_id):
                return _Choice(broker_id, (broker_id,), (), unclean=True)
        if self._unclean:
            for broker_id in (*self._longest_first, *replicas):
                if broker_id in replicas and self._fit(partition, broker_id):
                    return _Choice(broker_id, (broker_id,), (), unclean=True)
        return _Choice(NO_BROKER, isr, eligible)

    def _eligible(
        self, replicas: Sequence[int], isr: Sequence[int], complete: Sequence[int]
    ) -> tuple[int, ...]:
        """Who is known to hold everything without being in the ISR: only below the minimum is anybody."""
        if self._policy.safeguards.eligible_below_minimum and len(isr) >= min(self._min_isr, len(replicas)):
            return ()
        return tuple(each for each in replicas if each in complete and each not in isr)

    def _say_directories(
        self,
        record: PartitionChangeRecord,
        partition: int,
        replicas: Sequence[int],
        changed: Mapping[int, UUID] | None,
    ) -> None:
        if record.replicas is None and not changed:
            return
        topic = self._topic
        before = dict(zip(topic.replicas(partition), topic.directories(partition), strict=True))
        after = {**before, **(changed or {})}
        directories = [
            after[each] if each in after else first_directory(self._policy, each) for each in replicas
        ]
        if record.replicas is not None or directories != list(before.values()):
            record.directories = directories


def _last_known(rare: Exceptional, leader: int, old_isr: tuple[int, ...], choice: _Choice) -> tuple[int, ...]:
    """The leader whose going left nobody in sync: the best guess when nobody is eligible either."""
    if choice.leader >= 0:
        return ()
    if old_isr and not choice.isr and leader >= 0:
        return (leader,)
    return rare.last_known_elr


def _say_place(record: PartitionChangeRecord, old: Replicas, new: Replicas) -> None:
    if new.all != old.all:
        record.replicas = list(new.all)
    if new.adding != old.adding:
        record.adding_replicas = list(new.adding)
    if new.removing != old.removing:
        record.removing_replicas = list(new.removing)


def first_directory(policy: ReplicationPolicy, broker_id: int) -> UUID:
    """A broker with one directory has no choice; one with several tells its choice later."""
    broker = policy.image.brokers.get(broker_id)
    if broker is None or len(broker.directories) != 1:
        return UNASSIGNED_DIRECTORY
    return broker.directories[0]


def says_nothing(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == KEEP_LEADER
        and record.isr is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.leader_recovery_state < 0
        and record.replicas is None
        and record.adding_replicas is None
        and record.removing_replicas is None
        and record.directories is None
    )
