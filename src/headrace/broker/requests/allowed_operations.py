"""What a client may do, as bits over Kafka's operations. Without an authorizer: everything there is.

The few handlers that show rights, or list what the client did not name, ask here. Nothing that is asked here
is reported as a denial.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType
from headrace.security.rights import Rights

NOT_ASKED: Final = -(2**31)


_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = 3, 4, 5, 6, 7, 8
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = 9, 10, 11, 12


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


ON_TOPIC: Final = _bits(_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
ON_CLUSTER: Final = _bits(
    _CREATE, _ALTER, _DESCRIBE, _CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE
)
ON_GROUP: Final = _bits(_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)


def on_topic(rights: Rights | None, name: str) -> int:
    return ON_TOPIC if rights is None else rights.mask(ResourceType.TOPIC, name) & ON_TOPIC


def on_group(rights: Rights | None, name: str) -> int:
    return ON_GROUP if rights is None else rights.mask(ResourceType.GROUP, name) & ON_GROUP


def on_cluster(rights: Rights | None) -> int:
    """Nothing for a client that may not describe the cluster, whatever else it may do."""
    if rights is None:
        return ON_CLUSTER
    mask = rights.mask(ResourceType.CLUSTER, CLUSTER_NAME)
    return mask & ON_CLUSTER if mask >> Operation.DESCRIBE & 1 else 0


def may_see_topic(rights: Rights | None, name: str) -> bool:
    """Whether a list of all topics names this one."""
    return rights is None or rights.allows_silently(Operation.DESCRIBE, ResourceType.TOPIC, name)


def topics_seen_by(rights: Rights | None) -> Callable[[str], bool] | None:
    """The same question, to be asked for any topic; None where the answer is always yes."""
    return None if rights is None else partial(may_see_topic, rights)
