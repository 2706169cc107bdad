"""Error codes of a broker, in words: what was wrong, and what can be done."""

from __future__ import annotations

from typing import Final

from headrace.client.errors import Refused
from headrace.protocol.error_codes import ErrorCode

RETRIABLE: Final = frozenset(
    (
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    )
)
"""Codes after which the same request may succeed, at this broker or another, once metadata is fresh."""

_WORDS: Final[dict[int, tuple[str, str]]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        "{subject} does not exist",
        "`headrace topic list` shows what is there; `headrace topic create NAME` makes a topic",
    ),
    ErrorCode.TOPIC_ALREADY_EXISTS: (
        "{subject} exists already",
        "`headrace topic describe NAME` shows it; `headrace topic alter NAME --partitions N` adds partitions",
    ),
    ErrorCode.INVALID_TOPIC_EXCEPTION: (
        "{subject} is not a name that a topic can have",
        "use 1 to 249 letters, digits, '.', '_' and '-'",
    ),
    ErrorCode.INVALID_PARTITIONS: (
        "the number of partitions for {subject} is invalid",
        "it is at least 1, and partitions can only be added",
    ),
    ErrorCode.INVALID_REPLICATION_FACTOR: (
        "the replication factor of {subject} is invalid",
        "it is at least 1 and at most the number of brokers",
    ),
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: (
        "{subject} cannot have these replicas",
        "name brokers that are registered, each once; `headrace cluster status` shows them",
    ),
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: ("{subject} is not being moved", ""),
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: (
        "the preferred leader of {subject} is not in sync",
        "`headrace topic describe NAME` shows who is; wait for it, or start its broker",
    ),
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: (
        "no replica of {subject} that may lead is alive",
        "start the brokers that hold its replicas",
    ),
    ErrorCode.BROKER_ID_NOT_REGISTERED: (
        "{subject} is not registered",
        "`headrace cluster status` shows them",
    ),
    ErrorCode.OFFSET_OUT_OF_RANGE: (
        "the offset is outside the log of {subject}",
        "`headrace topic offsets NAME` shows the first and the last",
    ),
    ErrorCode.MESSAGE_TOO_LARGE: (
        "a batch is larger than {subject} takes",
        "raise max.message.bytes with `headrace config set --topic NAME max.message.bytes=N`",
    ),
    ErrorCode.RECORD_LIST_TOO_LARGE: (
        "a batch is larger than a segment of {subject}",
        "send smaller batches, or raise segment.bytes of the topic",
    ),
    ErrorCode.INVALID_RECORD: (
        "a record was refused by {subject}",
        "a compacted topic takes no record without a key: give one with -k KEY or -K DELIMITER",
    ),
    ErrorCode.CORRUPT_MESSAGE: ("a batch arrived broken at {subject}", ""),
    ErrorCode.INVALID_CONFIG: (
        "a setting of {subject} is invalid",
        "`headrace config list` with --topic, --group or --broker shows every name and its value; with --json"
        " also what it means",
    ),
    ErrorCode.POLICY_VIOLATION: ("a policy of the cluster forbids this for {subject}", ""),
    ErrorCode.NOT_ENOUGH_REPLICAS: (
        "{subject} has fewer replicas in sync than min.insync.replicas asks for",
        "start the brokers that are down, or produce with --acks 1",
    ),
    ErrorCode.LEADER_NOT_AVAILABLE: ("{subject} has no leader", "start the brokers that hold its replicas"),
    ErrorCode.BROKER_NOT_AVAILABLE: ("{subject} is not available", ""),
    ErrorCode.UNSUPPORTED_VERSION: ("the broker is too old for what was asked about {subject}", ""),
    ErrorCode.TOPIC_DELETION_DISABLED: (
        "topics cannot be deleted in this cluster",
        "set delete.topic.enable=true in the configuration of the controller",
    ),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: (
        "{subject} has no coordinator",
        "`headrace cluster status` shows partitions without a leader; those of __consumer_offsets and of"
        " __transaction_state need one",
    ),
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: (
        "the coordinator of {subject} is still loading",
        "ask again in a moment",
    ),
    ErrorCode.INVALID_GROUP_ID: ("{subject}: this is not a name that a group can have", ""),
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "the brokers do not take this session timeout for {subject}",
        "it is between group.min.session.timeout.ms and group.max.session.timeout.ms, which are properties of"
        " the brokers",
    ),
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
        "the members of {subject} share partitions in another way",
        "choose another group, or stop them; `headrace group describe GROUP` shows their assignor",
    ),
    ErrorCode.GROUP_ID_NOT_FOUND: (
        "{subject} does not exist",
        "`headrace group list` shows what is there",
    ),
    ErrorCode.NON_EMPTY_GROUP: (
        "{subject} has members",
        "stop its consumers first; `headrace group describe GROUP` names them and their hosts",
    ),
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "members of the group are subscribed to {subject}",
        "stop those consumers first; `headrace group describe GROUP` names them",
    ),
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: (
        "{subject} is not known",
        "`headrace txn list` shows what is; an id is forgotten a week after its last use",
    ),
    ErrorCode.INVALID_PRODUCER_EPOCH: (
        "{subject}: the producer has a newer epoch",
        "the transaction has ended meanwhile, or another began: look again with `headrace txn find-hanging`",
    ),
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: (
        "{subject}: a newer coordinator has written there",
        "look again with `headrace txn find-hanging`",
    ),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (
        "{subject}: this user has no right to do that",
        "`headrace acl explain USER OPERATION TOPIC` says why, and what would allow it",
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (
        "{subject}: this user has no right to do that",
        "`headrace acl explain USER OPERATION group:NAME` says why, and what would allow it",
    ),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (
        "{subject}: this user has no right to do that",
        "name an administrator's properties with --command-config; `headrace acl explain USER OPERATION"
        " cluster` says what is missing",
    ),
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "{subject}: this user has no right to do that",
        "`headrace acl explain USER write txn:ID` says why, and what would allow it",
    ),
    ErrorCode.SECURITY_DISABLED: (
        "{subject}: the cluster has no authorizer, so everybody may do everything",
        "set authorizer.class.name in the properties of the brokers, or try `headrace up --secure`",
    ),
    ErrorCode.RESOURCE_NOT_FOUND: ("{subject} does not exist", ""),
    ErrorCode.KAFKA_STORAGE_ERROR: (
        "{subject}: the disk failed, or what was asked for is damaged there",
        "`headrace cluster status` says which, and what to do next",
    ),
}


def refusal(code: int, subject: str, message: str | None = None) -> Refused:
    """The error to raise for `code` about `subject` ("topic orders", "broker 1").

    What the broker itself says is kept: it knows more than the code does.
    """
    words, hint = _WORDS.get(code, ("{subject}: the broker answered " + code_name(code), ""))
    text = words.format(subject=subject)
    if message:
        text = f"{text}: {message}"
    return Refused(code, text, hint)


def code_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"


def refusal_of_leader(code: int, subject: str, message: str | None = None) -> Refused:
    """What the broker says that the metadata names as leader. If it knows no such partition, it has not heard
    of it yet, or of its end: ask again. If the topic is gone, fresh metadata says so for good."""
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return refusal(code, subject, message)
