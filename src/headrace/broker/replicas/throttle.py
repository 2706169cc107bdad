"""Replication quotas: how fast throttled replicas may catch up. Pure: time is an argument.

A rate holds for one broker and one direction (`leader.replication.throttled.rate`, `follower. ...`), over the
partitions that their topics name (`leader.replication.throttled.replicas`, `follower. ...`). A replica that
is in sync is never held back: it would leave the ISR, and the throttle is for those on their way in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
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
    """One direction of one broker."""

    __slots__ = ("_broker_id", "_for_leader", "_rate", "_recent")

    def __init__(self, broker_id: int, *, for_leader: bool) -> None:
        self._broker_id = broker_id
        self._for_leader = for_leader
        self._rate = UNLIMITED
        self._recent = SlidingRate()

    def set_rate(self, bytes_per_second: int) -> None:
        self._rate = bytes_per_second

    @property
    def is_limited(self) -> bool:
        """False spares everybody every other question: it is, but for the hours of a reassignment."""
        return self._rate < UNLIMITED

    def covers(self, config: TopicConfig, partition: int) -> bool:
        """Whether the topic names this broker's replica of the partition, or all of them."""
        if self._for_leader:
            return _names(config.leader_replication_throttled_replicas, partition, self._broker_id)
        return _names(config.follower_replication_throttled_replicas, partition, self._broker_id)

    def record(self, count: int, now: float) -> None:
        self._recent.record(count, now)

    def seconds_over(self, now: float) -> float:
        """How long covered replicas that are not in sync have to wait; 0 if they need not.

        Never longer than a sample: whoever has waited asks again, and the rate may be another by then.
        """
        if not self.is_limited:
            return 0.0
        return min(self._recent.seconds_over(self._rate, now), SAMPLE_SECONDS)


class ReplicationThrottles:
    """Both directions of one broker."""

    __slots__ = ("_seen", "follower", "leader")

    def __init__(self, broker_id: int) -> None:
        self.leader = Throttle(broker_id, for_leader=True)
        """For fetches by replicas, which this broker answers."""
        self.follower = Throttle(broker_id, for_leader=False)
        """For the fetches that this broker sends."""
        self._seen: BrokerConfig | None = None

    def update(self, config: BrokerConfig) -> None:
        """Called often: costs nothing while the configuration is the same object."""
        if config is not self._seen:
            self._seen = config
            self.leader.set_rate(config.leader_replication_throttled_rate)
            self.follower.set_rate(config.follower_replication_throttled_rate)


def _names(replicas: Sequence[str], partition: int, broker_id: int) -> bool:
    return bool(replicas) and (tuple(replicas) == EVERYTHING or f"{partition}:{broker_id}" in replicas)
