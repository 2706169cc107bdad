"""Rules over more than one property of groups of the server-side protocol, as Kafka has them."""

from __future__ import annotations

from typing import NamedTuple

from headrace.config.broker_properties.consumer_groups import ConsumerGroupProperties


class Bounded(NamedTuple):
    """A value that a group may have of its own, and what the broker allows."""

    name: str
    """As the group's own; the broker's properties have it behind `group.consumer.`, `.min.` and `.max.`."""
    least: int
    value: int
    """Where a group has none of its own."""
    most: int


def consumer_group_bounds(config: ConsumerGroupProperties) -> tuple[Bounded, Bounded, Bounded]:
    """Of the session timeout, the heartbeat interval, the assignment interval."""
    return (
        Bounded(
            "session.timeout.ms",
            config.group_consumer_min_session_timeout_ms,
            config.group_consumer_session_timeout_ms,
            config.group_consumer_max_session_timeout_ms,
        ),
        Bounded(
            "heartbeat.interval.ms",
            config.group_consumer_min_heartbeat_interval_ms,
            config.group_consumer_heartbeat_interval_ms,
            config.group_consumer_max_heartbeat_interval_ms,
        ),
        Bounded(
            "assignment.interval.ms",
            config.group_consumer_min_assignment_interval_ms,
            config.group_consumer_assignment_interval_ms,
            config.group_consumer_max_assignment_interval_ms,
        ),
    )


def check_consumer_groups(config: ConsumerGroupProperties) -> str | None:
    """The complaint about values that do not fit together, or None."""
    for name, least, value, most in consumer_group_bounds(config):
        if not least <= value <= most:
            return (
                f"group.consumer.{name}={value} is not between group.consumer.min.{name}={least} and "
                f"group.consumer.max.{name}={most}"
            )
    heartbeat, session = config.group_consumer_heartbeat_interval_ms, config.group_consumer_session_timeout_ms
    if heartbeat >= session:
        return (
            f"group.consumer.heartbeat.interval.ms={heartbeat} is not below "
            f"group.consumer.session.timeout.ms={session}, so that every member would be taken for dead"
        )
    return None
