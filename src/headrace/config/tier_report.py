"""The name under which a broker tells of its history in an object store, by DescribeConfigs; `health.py` has
the first such.

Whoever asks a Headrace broker for the setting `headrace.tier` of itself is told of each partition of a tiered
topic that it leads. That needs DESCRIBE on the cluster too. A broker without a store tells nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from headrace.core.ids import TopicPartition

TIER: Final = "headrace.tier"
TOPIC: Final = "topic."
"""Begins the names of figures that are one topic each, as a JSON list of partitions."""


class LedTier(NamedTuple):
    """Of one partition, as its leader knows it."""

    partition: int
    remote_bytes: int | None
    """Of records in the store; None before the leader has read the manifest."""
    local_bytes: int
    """On the leader's own disk."""
    sealed_end: int
    """Where the segment begins that is still written, and not copied."""
    waiting_bytes: int
    """Of sealed segments that are not in the store."""
    waiting_segments: int
    waiting_ms: int
    """For how long the oldest of them waits."""
    stopped: str
    """Why its history is neither extended nor shortened; empty if it is."""


def topic_figure(topic: str, led: Iterable[LedTier]) -> tuple[str, str]:
    return TOPIC + topic, json.dumps([list(each) for each in led], separators=(",", ":"))


def read_tier_report(figures: Mapping[str, str]) -> dict[TopicPartition, LedTier]:
    """Raises ValueError if it is of a broker that writes it otherwise. A later one may tell more."""
    found = {}
    try:
        for name, text in figures.items():
            if not name.startswith(TOPIC):
                continue
            for each in json.loads(text):
                number, remote, local, sealed_end, waiting, segments, waiting_ms, stopped, *_ = each
                led = LedTier(
                    int(number),
                    None if remote is None else int(remote),
                    int(local),
                    int(sealed_end),
                    int(waiting),
                    int(segments),
                    int(waiting_ms),
                    str(stopped),
                )
                found[TopicPartition(name.removeprefix(TOPIC), led.partition)] = led
    except (TypeError, ValueError) as error:
        raise ValueError(f"its report cannot be read, it may be of another version: {error}") from None
    return found
