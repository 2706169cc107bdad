"""What the denied are told: a code for each type of resource, and a text where there is a place for one.

The text names nothing: it must not say more about a resource than the code does.
"""

from __future__ import annotations

from typing import Final

from headrace.protocol.error_codes import ErrorCode

TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TRANSACTIONAL_ID_DENIED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

TEXTS: Final[dict[ErrorCode, str]] = {
    TOPIC_DENIED: "the principal may not do this with the topic",
    GROUP_DENIED: "the principal may not do this with the group",
    CLUSTER_DENIED: "the principal may not do this with the cluster",
    TRANSACTIONAL_ID_DENIED: "the principal may not use the transactional id",
}
