"""Groups and transactions tell with the same words what their coordinator cannot do."""

from __future__ import annotations

import pytest

from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.transactions.patient_requests import told_to
from headrace.core import errors
from headrace.core.ports_network import PeerUnavailable
from headrace.protocol.error_codes import ErrorCode


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UnknownTopicOrPartition("x"), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (errors.NotEnoughReplicas("x"), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (errors.NotEnoughReplicasAfterAppend("x"), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (errors.RequestTimedOut("x"), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (errors.NotLeader("x"), ErrorCode.NOT_COORDINATOR),
        (errors.StorageError("x"), ErrorCode.NOT_COORDINATOR),
        (errors.MessageTooLarge("x"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (errors.BatchLargerThanSegment("x"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (PeerUnavailable("x"), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (errors.ConcurrentTransactions("x"), ErrorCode.CONCURRENT_TRANSACTIONS),
        (errors.UnknownMember("x"), ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_both_coordinators_use_the_same_words(error: Exception, code: ErrorCode) -> None:
    assert refusal_code(error) == code
    assert told_to(2, 2, error) == code


def test_only_newer_clients_are_told_that_they_are_fenced() -> None:
    fenced = errors.ProducerFenced("x")
    assert told_to(2, 2, fenced) == ErrorCode.PRODUCER_FENCED
    assert told_to(1, 2, fenced) == ErrorCode.INVALID_PRODUCER_EPOCH
