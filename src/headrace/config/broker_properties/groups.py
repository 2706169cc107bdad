"""Groups of the classic protocol: how long members may be silent, and how long others wait for them."""

from __future__ import annotations

from headrace.config.declare import int32
from headrace.config.values import INT_MAX


class GroupProperties:
    group_initial_rebalance_delay_ms = int32(
        "group.initial.rebalance.delay.ms",
        3_000,
        "How long a new group waits for more members before its first assignment.",
    )
    group_min_session_timeout_ms = int32(
        "group.min.session.timeout.ms",
        6_000,
        "The shortest session timeout that a group member may ask for.",
    )
    group_max_session_timeout_ms = int32(
        "group.max.session.timeout.ms",
        1_800_000,
        "The longest session timeout that a group member may ask for.",
    )
    group_max_size = int32(
        "group.max.size",
        INT_MAX,
        "How many members a group may have. Whoever comes later is refused.",
        at_least=1,
    )
