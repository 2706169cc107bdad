"""How much each partition receives and sends, from reports that brokers gave at several times.

Brokers count bytes by topic, and say how far each partition reaches. So the bytes of a topic, over the
brokers that led it, are shared out by how many records each of its partitions has got. What consumers fetch
is shared out in the same way: who reads a topic mostly reads all of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple

from headrace.controller.self_balancing.reports import LoadReport
from headrace.core.ids import TopicPartition

WINDOW_SECONDS: Final = 300.0
"""What is older has no influence any more, as soon as there is something newer to compare with."""
MOST_SAMPLES: Final = 12


class Rates(NamedTuple):
    bytes_in: float = 0.0
    bytes_out: float = 0.0


class _Topic(NamedTuple):
    counted: dict[int, tuple[int, int]]
    """By broker: bytes in and out since its start."""
    ends: dict[int, int]
    """By partition."""


class RateSamples:
    """Invariant: the samples are in the order of their times, and at least one stays."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, dict[str, _Topic]]] = deque(maxlen=MOST_SAMPLES)

    def note(self, seconds: float, reports: Mapping[int, LoadReport]) -> None:
        topics: dict[str, _Topic] = {}
        for broker_id, report in reports.items():
            for name, traffic in report.topics.items():
                topic = topics.setdefault(name, _Topic({}, {}))
                topic.counted[broker_id] = traffic.bytes_in, traffic.bytes_out
                for led in traffic.led:
                    topic.ends[led.number] = max(led.end_offset, topic.ends.get(led.number, 0))
        self._samples.append((seconds, topics))
        while len(self._samples) > 2 and seconds - self._samples[1][0] >= WINDOW_SECONDS:
            self._samples.popleft()

    def forget(self) -> None:
        self._samples.clear()

    @property
    def seconds(self) -> float:
        """What the samples span; 0 if there are too few of them."""
        return self._samples[-1][0] - self._samples[0][0] if len(self._samples) > 1 else 0.0

    def rates(self) -> dict[TopicPartition, Rates]:
        """Of every partition that is led now. Empty as long as there is nothing to compare with."""
        seconds = self.seconds
        if seconds <= 0:
            return {}
        before, now = self._samples[0][1], self._samples[-1][1]
        found: dict[TopicPartition, Rates] = {}
        for name, topic in now.items():
            earlier = before.get(name, _Topic({}, {}))
            bytes_in, bytes_out = (
                sum(
                    _grown(counts[at], earlier.counted.get(b, (0, 0))[at])
                    for b, counts in topic.counted.items()
                )
                for at in (0, 1)
            )
            grown = {index: _grown(end, earlier.ends.get(index, end)) for index, end in topic.ends.items()}
            all_grown = sum(grown.values())
            for index in topic.ends:
                share = grown[index] / all_grown if all_grown else 1 / len(topic.ends)
                found[TopicPartition(name, index)] = Rates(
                    bytes_in * share / seconds, bytes_out * share / seconds
                )
        return found


def _grown(now: int, before: int) -> int:
    """A broker that was restarted counts from 0 again."""
    return now - before if now >= before else now
