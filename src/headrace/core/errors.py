"""Domain errors, by blame. They carry no wire code: `broker/requests/errors.py` translates each one, once.

The text of an error reaches a person: it says what is wrong and, where something can be done, what to do.
"""

from __future__ import annotations


class HeadraceError(Exception):
    """Everything that this project raises on purpose."""


# --- the peer's fault: the request cannot be carried out as it was asked --------------------------------


class ClientError(HeadraceError):
    """The peer asked for something that cannot be; repeating it unchanged will not help."""


class InvalidRequest(ClientError):
    pass


class AuthenticationRefused(ClientError):
    """The peer does not authenticate as it should, and loses its connection."""


class TooSlow(ClientError):
    """The peer holds memory that others wait for, and does not get on."""


class UnsupportedVersion(ClientError):
    pass


class CorruptBatch(ClientError):
    """A record batch whose checksum, length or magic is wrong. Never stored, never served."""


class DoesNotFollow(CorruptBatch):
    """An intact batch that cannot follow what the log ends with: the two are of different logs."""


class InvalidRecord(ClientError):
    """A batch that is intact but says something that its topic forbids."""


class InvalidTimestamp(ClientError):
    pass


class MessageTooLarge(ClientError):
    pass


class BatchLargerThanSegment(ClientError):
    pass


class UnsupportedCompression(ClientError):
    pass


class OutOfOrderSequence(ClientError):
    pass


class InvalidProducerEpoch(ClientError):
    pass


class UnknownProducerId(ClientError):
    pass


class OffsetOutOfRange(ClientError):
    pass


class InvalidTopic(ClientError):
    pass


class TopicExists(ClientError):
    pass


class UnknownTopicOrPartition(ClientError):
    pass


class UnknownTopicId(ClientError):
    pass


class InconsistentTopicId(ClientError):
    pass


class InvalidPartitions(ClientError):
    pass


class InvalidReplicationFactor(ClientError):
    pass


class InvalidReplicaAssignment(ClientError):
    pass


class InvalidConfig(ClientError):
    pass


class InvalidRequiredAcks(ClientError):
    pass


class PolicyViolation(ClientError):
    pass


class ThrottlingQuotaExceeded(ClientError):
    pass


class UnknownServerId(ClientError):
    """A broker id that is not registered."""


class FetchSessionNotFound(ClientError):
    pass


class InvalidFetchSessionEpoch(ClientError):
    pass


class FetchSessionTopicIdError(ClientError):
    pass


class InvalidTransactionState(ClientError):
    pass


class ProducerFenced(ClientError):
    """Another process has taken over the transactional id, or the coordinator has ended its transaction."""


class InvalidProducerIdMapping(ClientError):
    """The transactional id is not known, or belongs to another producer id."""


class InvalidTransactionTimeout(ClientError):
    pass


class TransactionalIdNotFound(ClientError):
    pass


class TransactionalIdNotAuthorized(ClientError):
    pass


class TopicNotAuthorized(ClientError):
    pass


class TransactionCoordinatorFenced(ClientError):
    """A marker of a coordinator that has been replaced."""


class TransactionAbortable(ClientError):
    """The transaction cannot go on, and can be aborted: what it wrote is not what its coordinator knows."""


class NoReassignmentInProgress(ClientError):
    pass


class InvalidGroupId(ClientError):
    pass


class InvalidSessionTimeout(ClientError):
    pass


class InconsistentGroupProtocol(ClientError):
    """A member that shares no protocol with its group, or is of another kind altogether."""


class UnknownMember(ClientError):
    pass


class IllegalGeneration(ClientError):
    """A member of a generation that is over, or not yet there."""


class MemberIdRequired(ClientError):
    """A new member gets its id first and joins with it, so that an answer that is lost leaves no ghost."""


class FencedInstance(ClientError):
    """Another process has taken the place of this static member."""


class UnreleasedInstance(ClientError):
    """The static member whose place is asked for has not left it."""


class GroupMaxSizeReached(ClientError):
    pass


class GroupNotFound(ClientError):
    pass


class NonEmptyGroup(ClientError):
    pass


class GroupSubscribedToTopic(ClientError):
    pass


class FencedMemberEpoch(ClientError):
    pass


class StaleMemberEpoch(ClientError):
    pass


class UnsupportedAssignor(ClientError):
    pass


class InvalidRegularExpression(ClientError):
    pass


class IneligibleReplica(ClientError):
    """A proposed ISR with a replica that may not be in it: fenced, stopping, or of another incarnation."""


# --- nobody's fault: the state has moved on; the peer refreshes its metadata and asks again ---------------


class RetriableError(HeadraceError):
    """The same request may succeed later, or at another broker."""


class NotLeader(RetriableError):
    pass


class FencedLeaderEpoch(RetriableError):
    pass


class UnknownLeaderEpoch(RetriableError):
    pass


class LeaderNotAvailable(RetriableError):
    pass


class NotController(RetriableError):
    pass


class NotReady(RetriableError):
    """The broker is starting: it serves other brokers, and no client yet."""


class CoordinatorNotAvailable(RetriableError):
    pass


class NotCoordinator(RetriableError):
    """Another broker decides this, or did since the request came."""


class CoordinatorLoading(RetriableError):
    """Who decides this exists, and cannot yet: its state is being read, or its own authority is away."""


class RebalanceInProgress(RetriableError):
    """The group is being assigned anew; the member joins again."""


class ConcurrentTransactions(RetriableError):
    """The transaction before this one is being ended; that does not take long."""


class NotEnoughReplicas(RetriableError):
    pass


class NotEnoughReplicasAfterAppend(RetriableError):
    """Written, and perhaps kept, but not by as many replicas as were asked for."""


class ElectionNotNeeded(RetriableError):
    pass


class PreferredLeaderNotAvailable(RetriableError):
    pass


class EligibleLeadersNotAvailable(RetriableError):
    pass


class StaleBrokerEpoch(RetriableError):
    """A request of an incarnation of a broker that has been replaced."""


class InvalidUpdateVersion(RetriableError):
    """A change of a partition that was decided on an older row of it."""


class NewLeaderElected(RetriableError):
    """The change was made, and with it another broker became the leader."""


class RequestTimedOut(RetriableError):
    pass


class OffsetNotAvailable(RetriableError):
    pass


class HistoryUnavailable(RetriableError):
    """What is asked for lies in the object store, which does not give it now."""


class OffsetMovedToTieredStorage(RetriableError):
    """A follower asks for what is only in the object store: it reads the manifest, and begins behind it."""


# --- our fault: the operator has to know -------------------------------------------------------------------


class ServerError(HeadraceError):
    pass


class StorageError(ServerError):
    """A log directory failed; its partitions are offline until it is replaced."""


class TooManyProducers(RetriableError):
    """The memory for what is remembered of producers is used up; it is freed when some are silent."""


class DiskFull(StorageError):
    """No room is left in a log directory. Nothing was lost, and it takes writes again when there is room."""


class TooManyOpenFiles(StorageError):
    """The process may open no more files for now. That is no fault of the log directory: nothing was lost."""


class CorruptLog(ServerError):
    """Stored data that cannot be what was written. Never repaired by deleting it silently."""


class ConfigError(ServerError):
    """The broker's own configuration is wrong: it refuses to start and says which line to change."""
