"""Groups of the server-side protocol (KIP-848): sessions, assignors, and moving between the protocols."""

from __future__ import annotations

from headrace.config.declare import int32, names, text
from headrace.config.property import UpdateMode
from headrace.config.values import INT_MAX

_ASSIGNORS = ("uniform", "range")
_POLICIES = ("disabled", "upgrade", "downgrade", "bidirectional")


def _check_assignors(chosen: tuple[str, ...]) -> str | None:
    if not chosen:
        return "name at least one of uniform and range"
    if len(set(chosen)) != len(chosen):
        return "name each assignor once"
    unknown = [name for name in chosen if name not in _ASSIGNORS]
    return f"{unknown[0]} is not an assignor; use uniform and range" if unknown else None


class ConsumerGroupProperties:
    group_consumer_session_timeout_ms = int32(
        "group.consumer.session.timeout.ms",
        45_000,
        "How long a member of the server-side protocol may be silent before it is taken for dead.",
        at_least=1,
    )
    group_consumer_min_session_timeout_ms = int32(
        "group.consumer.min.session.timeout.ms",
        45_000,
        "The shortest session timeout that may be set.",
        at_least=1,
    )
    group_consumer_max_session_timeout_ms = int32(
        "group.consumer.max.session.timeout.ms",
        60_000,
        "The longest session timeout that may be set.",
        at_least=1,
    )
    group_consumer_heartbeat_interval_ms = int32(
        "group.consumer.heartbeat.interval.ms",
        5_000,
        "How often members of the server-side protocol are told to report.",
        at_least=1,
    )
    group_consumer_min_heartbeat_interval_ms = int32(
        "group.consumer.min.heartbeat.interval.ms",
        5_000,
        "The shortest interval between heartbeats that may be set.",
        at_least=1,
    )
    group_consumer_max_heartbeat_interval_ms = int32(
        "group.consumer.max.heartbeat.interval.ms",
        15_000,
        "The longest interval between heartbeats that may be set.",
        at_least=1,
    )
    group_consumer_max_size = int32(
        "group.consumer.max.size",
        INT_MAX,
        "How many members a group of the server-side protocol may have. Whoever comes later is refused.",
        at_least=1,
    )
    group_consumer_assignors = names(
        "group.consumer.assignors",
        _ASSIGNORS,
        "The assignors that members may name. The first is used where none is named.",
        check=_check_assignors,
    )
    group_consumer_assignment_interval_ms = int32(
        "group.consumer.assignment.interval.ms",
        1_000,
        "How long after an assignment the next one may be computed. Changes in between are taken together.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
    )
    group_consumer_min_assignment_interval_ms = int32(
        "group.consumer.min.assignment.interval.ms",
        0,
        "The shortest interval between assignments that may be set.",
        at_least=0,
    )
    group_consumer_max_assignment_interval_ms = int32(
        "group.consumer.max.assignment.interval.ms",
        15_000,
        "The longest interval between assignments that may be set.",
        at_least=0,
    )
    group_consumer_regex_refresh_interval_ms = int32(
        "group.consumer.regex.refresh.interval.ms",
        600_000,
        "How often the topics of a subscribed pattern are looked up again without a change of topics.",
        at_least=10_000,
        internal=True,
    )
    group_consumer_migration_policy = text(
        "group.consumer.migration.policy",
        "bidirectional",
        "Whether a group with members may change its protocol: to the server-side one (upgrade), back "
        "(downgrade), both or never. An empty group always may.",
        check=lambda value: None if value.lower() in _POLICIES else f"use one of {', '.join(_POLICIES)}",
    )
