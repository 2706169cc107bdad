"""Replication quotas: how fast throttled replicas may catch up. Pure: time is an argument.

A rate holds for one broker and one direction (`leader.replication.throttled.rate`, `follower. ...`), over the
partitions that their topics name (`leader.replication.throttled.replicas`, `follower. ...`). A replica that
is in sync is never held back: it would leave the ISR, and the throttle is for those on their way in. What
self-balancing moves has a rate of its own (`headrace.balance.bytes.per.second`) as long as that is enabled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from headrace.config.values import LONG_MAX

if TYPE_CHECKING:
    from headrace.config.broker import BrokerConfig
    from headrace.config.topic import TopicConfig

UNLIMITED: Final = LONG_MAX
WINDOW_SECONDS: Final = 10.0
SAMPLE_SECONDS: Final = 1.0
EVERYTHING: Final = ("*",)


class SlidingRate:
    """Bytes a second over a window that slides in samples of a second."""

    __slots__ = ("_samples", "_total")

    def __init__(self) -> None:
        self._samples: deque[list[float]] = deque()
        """[when the sample began, bytes], the oldest first."""
        self._total = 0.0

    def record(self, count: int, now: float) -> None:
        samples = self._samples
        if not samples or now - samples[-1][0] >= SAMPLE_SECONDS:
            samples.append([now, 0.0])
        samples[-1][1] += count
        self._total += count
        self._slide(now)

    def seconds_over(self, rate: float, now: float) -> float:
        """How long nothing may be recorded for the mean to come down to `rate`; 0 if it is not above it."""
        self._slide(now)
        if not self._samples:
            return 0.0
        if rate <= 0:
            return SAMPLE_SECONDS
        elapsed = max(now - self._samples[0][0], SAMPLE_SECONDS)
        return max(self._total / rate - elapsed, 0.0)

    def _slide(self, now: float) -> None:
        samples = self._samples
        while samples and now - samples[0][0] > WINDOW_SECONDS:
            self._total -= samples.popleft()[1]


class Throttle:
    """One rate, of one direction of one broker, and whom it holds for."""

    __slots__ = ("_rate", "_recent", "covers")

    def __init__(self, covers: Callable[[TopicConfig, int], bool]) -> None:
        self.covers = covers
        """Whether it holds for this broker's replica of a partition of the topic."""
        self._rate = UNLIMITED
        self._recent = SlidingRate()

    def set_rate(self, bytes_per_second: int) -> None:
        self._rate = bytes_per_second

    @property
    def is_limited(self) -> bool:
        return self._rate < UNLIMITED

    def record(self, count: int, now: float) -> None:
        self._recent.record(count, now)

    def seconds_over(self, now: float) -> float:
        """How long covered replicas that are not in sync have to wait; 0 if they need not.

        Never longer than a sample: whoever has waited asks again, and the rate may be another by then.
        """
        if not self.is_limited:
            return 0.0
        return min(self._recent.seconds_over(self._rate, now), SAMPLE_SECONDS)


class DirectionThrottles:
    """What limits one direction of one broker: the operator's throttle, and that of self-balancing."""

    __slots__ = ("is_limited", "operator", "self_balancing")

    def __init__(self, broker_id: int, *, for_leader: bool) -> None:
        def named_by_operator(config: TopicConfig, partition: int) -> bool:
            if for_leader:
                return _names(config.leader_replication_throttled_replicas, partition, broker_id)
            return _names(config.follower_replication_throttled_replicas, partition, broker_id)

        def is_balanced(config: TopicConfig, partition: int) -> bool:
            moved = config.headrace_balance_moved_replicas
            if not moved or not for_leader:
                return f"{partition}:{broker_id}" in moved
            return any(pair.startswith(f"{partition}:") for pair in moved)  # whoever fetches is added to it

        self.operator = Throttle(named_by_operator)
        self.self_balancing = Throttle(is_balanced)
        self.is_limited = False
        """False spares everybody every other question: it is, but for the hours of a reassignment."""

    def set_rates(self, operator: int, self_balancing: int = UNLIMITED) -> None:
        self.operator.set_rate(operator)
        self.self_balancing.set_rate(self_balancing)
        self.is_limited = self.operator.is_limited or self.self_balancing.is_limited

    def throttle_of(self, config: TopicConfig, partition: int) -> Throttle | None:
        """What this broker's replica of a partition counts against; what an operator says goes first."""
        for throttle in (self.operator, self.self_balancing):
            if throttle.is_limited and throttle.covers(config, partition):
                return throttle
        return None


class ReplicationThrottles:
    """Both directions of one broker."""

    __slots__ = ("_balanced", "_seen", "follower", "leader")

    def __init__(self, broker_id: int) -> None:
        self.leader = DirectionThrottles(broker_id, for_leader=True)
        """For fetches by replicas, which this broker answers."""
        self.follower = DirectionThrottles(broker_id, for_leader=False)
        """For the fetches that this broker sends."""
        self._seen: BrokerConfig | None = None
        self._balanced: set[str] = set()
        """Topics of which self-balancing moves something, as far as this broker hosts them."""

    def watch(self, topic: str, config: TopicConfig | None) -> None:
        """The configuration of a topic that this broker hosts has changed; None: it is gone."""
        is_balanced = config is not None and bool(config.headrace_balance_moved_replicas)
        if is_balanced != (topic in self._balanced):
            (self._balanced.add if is_balanced else self._balanced.discard)(topic)
            self._set_rates()

    def update(self, config: BrokerConfig) -> None:
        """Called often: costs nothing while the configuration is the same object."""
        if config is not self._seen:
            self._seen = config
            self._set_rates()

    def _set_rates(self) -> None:
        config = self._seen
        if config is None:
            return
        is_balancing = config.headrace_balance_enable and self._balanced
        balancing = config.headrace_balance_bytes_per_second if is_balancing else UNLIMITED
        self.leader.set_rates(config.leader_replication_throttled_rate, balancing)
        self.follower.set_rates(config.follower_replication_throttled_rate, balancing)


def _names(replicas: Sequence[str], partition: int, broker_id: int) -> bool:
    return bool(replicas) and (tuple(replicas) == EVERYTHING or f"{partition}:{broker_id}" in replicas)
