"""Domain errors become wire codes here, once."""

from __future__ import annotations

from typing import Final

from headrace.core import errors
from headrace.core.ports_network import PeerUnavailable
from headrace.protocol.error_codes import ErrorCode
from headrace.security import errors as security_errors
from headrace.security.acl import InvalidAclRequest
from headrace.security.scram_credential import UnacceptableCredential

_CODES: Final[dict[type[Exception], ErrorCode]] = {
    errors.InvalidRequest: ErrorCode.INVALID_REQUEST,
    errors.TooSlow: ErrorCode.REQUEST_TIMED_OUT,
    errors.UnsupportedVersion: ErrorCode.UNSUPPORTED_VERSION,
    errors.CorruptBatch: ErrorCode.CORRUPT_MESSAGE,
    errors.InvalidRecord: ErrorCode.INVALID_RECORD,
    errors.InvalidTimestamp: ErrorCode.INVALID_TIMESTAMP,
    errors.MessageTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    errors.BatchLargerThanSegment: ErrorCode.RECORD_LIST_TOO_LARGE,
    errors.UnsupportedCompression: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    errors.OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    errors.InvalidProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
    errors.TooManyProducers: ErrorCode.KAFKA_STORAGE_ERROR,
    errors.UnknownProducerId: ErrorCode.UNKNOWN_PRODUCER_ID,
    errors.OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    errors.InvalidTopic: ErrorCode.INVALID_TOPIC_EXCEPTION,
    errors.TopicExists: ErrorCode.TOPIC_ALREADY_EXISTS,
    errors.UnknownTopicOrPartition: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UnknownTopicId: ErrorCode.UNKNOWN_TOPIC_ID,
    errors.InconsistentTopicId: ErrorCode.INCONSISTENT_TOPIC_ID,
    errors.InvalidPartitions: ErrorCode.INVALID_PARTITIONS,
    errors.InvalidReplicationFactor: ErrorCode.INVALID_REPLICATION_FACTOR,
    errors.InvalidReplicaAssignment: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    errors.InvalidConfig: ErrorCode.INVALID_CONFIG,
    errors.InvalidRequiredAcks: ErrorCode.INVALID_REQUIRED_ACKS,
    errors.PolicyViolation: ErrorCode.POLICY_VIOLATION,
    errors.ThrottlingQuotaExceeded: ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    errors.UnknownServerId: ErrorCode.BROKER_ID_NOT_REGISTERED,
    errors.FetchSessionNotFound: ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    errors.InvalidFetchSessionEpoch: ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    errors.FetchSessionTopicIdError: ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    errors.InvalidTransactionState: ErrorCode.INVALID_TXN_STATE,
    errors.ProducerFenced: ErrorCode.PRODUCER_FENCED,
    errors.InvalidProducerIdMapping: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    errors.InvalidTransactionTimeout: ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    errors.TransactionalIdNotFound: ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    errors.TransactionalIdNotAuthorized: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    errors.TopicNotAuthorized: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    errors.TransactionCoordinatorFenced: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    errors.TransactionAbortable: ErrorCode.TRANSACTION_ABORTABLE,
    errors.ConcurrentTransactions: ErrorCode.CONCURRENT_TRANSACTIONS,
    errors.InvalidGroupId: ErrorCode.INVALID_GROUP_ID,
    errors.InvalidSessionTimeout: ErrorCode.INVALID_SESSION_TIMEOUT,
    errors.InconsistentGroupProtocol: ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    errors.UnknownMember: ErrorCode.UNKNOWN_MEMBER_ID,
    errors.IllegalGeneration: ErrorCode.ILLEGAL_GENERATION,
    errors.MemberIdRequired: ErrorCode.MEMBER_ID_REQUIRED,
    errors.FencedInstance: ErrorCode.FENCED_INSTANCE_ID,
    errors.UnreleasedInstance: ErrorCode.UNRELEASED_INSTANCE_ID,
    errors.GroupMaxSizeReached: ErrorCode.GROUP_MAX_SIZE_REACHED,
    errors.GroupNotFound: ErrorCode.GROUP_ID_NOT_FOUND,
    errors.NonEmptyGroup: ErrorCode.NON_EMPTY_GROUP,
    errors.GroupSubscribedToTopic: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    errors.FencedMemberEpoch: ErrorCode.FENCED_MEMBER_EPOCH,
    errors.StaleMemberEpoch: ErrorCode.STALE_MEMBER_EPOCH,
    errors.UnsupportedAssignor: ErrorCode.UNSUPPORTED_ASSIGNOR,
    errors.InvalidRegularExpression: ErrorCode.INVALID_REGULAR_EXPRESSION,
    errors.RebalanceInProgress: ErrorCode.REBALANCE_IN_PROGRESS,
    errors.NotLeader: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    errors.FencedLeaderEpoch: ErrorCode.FENCED_LEADER_EPOCH,
    errors.UnknownLeaderEpoch: ErrorCode.UNKNOWN_LEADER_EPOCH,
    errors.LeaderNotAvailable: ErrorCode.LEADER_NOT_AVAILABLE,
    errors.NotController: ErrorCode.NOT_CONTROLLER,
    errors.CoordinatorNotAvailable: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    errors.NotCoordinator: ErrorCode.NOT_COORDINATOR,
    errors.CoordinatorLoading: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    errors.NotEnoughReplicas: ErrorCode.NOT_ENOUGH_REPLICAS,
    errors.NotEnoughReplicasAfterAppend: ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    errors.ElectionNotNeeded: ErrorCode.ELECTION_NOT_NEEDED,
    errors.PreferredLeaderNotAvailable: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    errors.EligibleLeadersNotAvailable: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    errors.StaleBrokerEpoch: ErrorCode.STALE_BROKER_EPOCH,
    errors.InvalidUpdateVersion: ErrorCode.INVALID_UPDATE_VERSION,
    errors.NewLeaderElected: ErrorCode.NEW_LEADER_ELECTED,
    errors.NoReassignmentInProgress: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    errors.IneligibleReplica: ErrorCode.INELIGIBLE_REPLICA,
    errors.RequestTimedOut: ErrorCode.REQUEST_TIMED_OUT,
    errors.OffsetNotAvailable: ErrorCode.OFFSET_NOT_AVAILABLE,
    # What Kafka's clients and librdkafka take for a reason to ask again.
    errors.HistoryUnavailable: ErrorCode.KAFKA_STORAGE_ERROR,
    errors.OffsetMovedToTieredStorage: ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE,
    security_errors.SecurityDisabled: ErrorCode.SECURITY_DISABLED,
    security_errors.UnsupportedSaslMechanism: ErrorCode.UNSUPPORTED_SASL_MECHANISM,
    security_errors.ResourceNotFound: ErrorCode.RESOURCE_NOT_FOUND,
    security_errors.DuplicateResource: ErrorCode.DUPLICATE_RESOURCE,
    security_errors.InvalidPrincipalType: ErrorCode.INVALID_PRINCIPAL_TYPE,
    security_errors.DelegationTokensDisabled: ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
    security_errors.DelegationTokenNotFound: ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
    security_errors.DelegationTokenOwnerMismatch: ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
    security_errors.DelegationTokenNotAllowed: ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    security_errors.DelegationTokenExpired: ErrorCode.DELEGATION_TOKEN_EXPIRED,
    # As Kafka answers: its own classes refuse such a rule, which it did not expect.
    InvalidAclRequest: ErrorCode.UNKNOWN_SERVER_ERROR,
    UnacceptableCredential: ErrorCode.UNACCEPTABLE_CREDENTIAL,
    PeerUnavailable: ErrorCode.NETWORK_EXCEPTION,
    errors.StorageError: ErrorCode.KAFKA_STORAGE_ERROR,
    errors.CorruptLog: ErrorCode.KAFKA_STORAGE_ERROR,
}


def code_of(error: BaseException | None) -> ErrorCode:
    """The wire code of a domain error; of a subclass, that of its nearest known base."""
    if error is None:
        return ErrorCode.NONE
    for base in type(error).__mro__:
        code = _CODES.get(base)
        if code is not None:
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR


def text_of(error: BaseException | None) -> str | None:
    """What a client may read; the details of our own faults stay in our log."""
    if error is None:
        return None
    if isinstance(error, errors.ServerError) or not isinstance(error, errors.HeadraceError):
        return "the broker could not do this; its log says why"
    return str(error) or None
