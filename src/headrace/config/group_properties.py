"""The properties of a group, each declared once. A broker property stands behind each, with its bounds.

Kafka has more, for share groups and for groups of Kafka Streams, which Headrace does not have.
"""

from __future__ import annotations

from headrace.config.broker_properties.consumer_groups import ConsumerGroupProperties
from headrace.config.property import Property


def _of_group(broker_level: Property[int]) -> Property[int]:
    """The group's own value of a broker property: the same type, default and meaning. Its bounds are those
    that the broker is configured with."""
    return Property(
        broker_level.name.removeprefix("group."),
        broker_level.type,
        broker_level.default,
        broker_level.prose,
        at_least=broker_level.at_least,
        synonyms=((broker_level.name, 1),),
    )


CONSUMER_SESSION_TIMEOUT_MS = _of_group(ConsumerGroupProperties.group_consumer_session_timeout_ms)
CONSUMER_HEARTBEAT_INTERVAL_MS = _of_group(ConsumerGroupProperties.group_consumer_heartbeat_interval_ms)
CONSUMER_ASSIGNMENT_INTERVAL_MS = _of_group(ConsumerGroupProperties.group_consumer_assignment_interval_ms)

GROUP_PROPERTIES: dict[str, Property[int]] = {
    declared.name: declared
    for declared in (
        CONSUMER_SESSION_TIMEOUT_MS,
        CONSUMER_HEARTBEAT_INTERVAL_MS,
        CONSUMER_ASSIGNMENT_INTERVAL_MS,
    )
}
