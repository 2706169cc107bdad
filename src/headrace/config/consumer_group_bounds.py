"""Rules over more than one property of groups of the server-side protocol, as Kafka has them."""

from __future__ import annotations

from headrace.config.broker_properties.consumer_groups import ConsumerGroupProperties


def check_consumer_groups(config: ConsumerGroupProperties) -> str | None:
    """The complaint about values that do not fit together, or None."""
    bounded = (
        (
            "session.timeout.ms",
            config.group_consumer_min_session_timeout_ms,
            config.group_consumer_session_timeout_ms,
            config.group_consumer_max_session_timeout_ms,
        ),
        (
            "heartbeat.interval.ms",
            config.group_consumer_min_heartbeat_interval_ms,
            config.group_consumer_heartbeat_interval_ms,
            config.group_consumer_max_heartbeat_interval_ms,
        ),
        (
            "assignment.interval.ms",
            config.group_consumer_min_assignment_interval_ms,
            config.group_consumer_assignment_interval_ms,
            config.group_consumer_max_assignment_interval_ms,
        ),
    )
    for name, least, value, most in bounded:
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
