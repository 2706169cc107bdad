"""Self-balancing: a duty of the controller, off by default. Every value can be changed for all brokers at run
time, and none for a single one: the controller moves from broker to broker."""

from __future__ import annotations

from headrace.config.declare import boolean, int32, int64, names, real
from headrace.config.property import UpdateMode


def _broker_ids(items: tuple[str, ...]) -> str | None:
    if all(item.isascii() and item.isdigit() for item in items):
        return None
    return "use a list of broker ids, such as 3,4"


class BalancingProperties:
    headrace_balance_enable = boolean(
        "headrace.balance.enable",
        False,
        "Let the controller move replicas and leaderships until brokers are even. If it is turned off, moves "
        "that self-balancing has begun are cancelled.",
        update=UpdateMode.CLUSTER_WIDE,
    )
    headrace_balance_threshold_percent = real(
        "headrace.balance.threshold.percent",
        10.0,
        "How far a broker may be from its even share before self-balancing moves anything.",
        at_least=1,
        at_most=100,
        update=UpdateMode.CLUSTER_WIDE,
    )
    headrace_balance_max_moves = int32(
        "headrace.balance.max.moves",
        5,
        "Partitions that self-balancing moves at the same time, in the whole cluster.",
        at_least=1,
        at_most=1000,
        update=UpdateMode.CLUSTER_WIDE,
    )
    headrace_balance_bytes_per_second = int64(
        "headrace.balance.bytes.per.second",
        10_000_000,
        "Bytes a second that each broker sends, and that each broker fetches, for the replicas that "
        "self-balancing moves.",
        at_least=1,
        update=UpdateMode.CLUSTER_WIDE,
    )
    headrace_balance_interval_ms = int64(
        "headrace.balance.interval.ms",
        60_000,
        "How often self-balancing asks the brokers how much they hold, receive and send.",
        at_least=100,
        update=UpdateMode.CLUSTER_WIDE,
    )
    headrace_balance_max_disk_percent = real(
        "headrace.balance.max.disk.percent",
        80.0,
        "Self-balancing never fills a log directory beyond this, and does nothing while one is fuller.",
        at_least=1,
        at_most=100,
        update=UpdateMode.CLUSTER_WIDE,
    )
    headrace_balance_min_bytes = int64(
        "headrace.balance.min.bytes",
        1_073_741_824,
        "Self-balancing does not even out bytes while brokers hold less than this on average.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
    )
    headrace_balance_min_bytes_per_second = int64(
        "headrace.balance.min.bytes.per.second",
        100_000,
        "Self-balancing does not even out a rate, in or out, while it is less than this on average.",
        at_least=0,
        update=UpdateMode.CLUSTER_WIDE,
    )
    headrace_balance_excluded_brokers = names(
        "headrace.balance.excluded.brokers",
        (),
        "Brokers to which self-balancing gives nothing and from which it takes nothing, such as those that "
        "are about to be retired.",
        check=_broker_ids,
        update=UpdateMode.CLUSTER_WIDE,
    )
