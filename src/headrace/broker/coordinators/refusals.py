"""How a coordinator's refusal is told: clients expect other words of a coordinator than of a leader.

One table for groups and for transactions. Apache Kafka has one for each, and they agree wherever both can
hear the error: of a peer that cannot be asked only groups hear there, and transactions hear
COORDINATOR_LOAD_IN_PROGRESS where no producer id can be had, which is what a lost peer becomes here.
"""

from __future__ import annotations

from typing import Final

from headrace.broker.requests.errors import code_of
from headrace.protocol.error_codes import ErrorCode

_TOLD_AS: Final[dict[ErrorCode, ErrorCode]] = {
    # Asking who else takes part can fail; older clients repeat the request only for this.
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    # Of the records that a decision makes the client knows nothing.
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def refusal_code(error: Exception) -> ErrorCode:
    return told_as(code_of(error))


def told_as(code: ErrorCode) -> ErrorCode:
    return _TOLD_AS.get(code, code)
