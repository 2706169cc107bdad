"""The name under which a broker tells its load, by DescribeConfigs; `health.py` has the first such.

Whoever asks a Headrace broker for the setting `headrace.load` of itself is told what it holds, receives and
sends. That needs DESCRIBE on the cluster too, as DescribeLogDirs does.
"""

from __future__ import annotations

from typing import Final

LOAD: Final = "headrace.load"
DIRECTORY: Final = "directory."
"""Begins the names of figures that are one log directory each, as a JSON list: its path, whether it works,
total and free bytes; -1 where that is not known."""
TOPIC: Final = "topic."
"""Begins the names of figures that are one topic each, as JSON: `in` and `out`, the bytes that producers have
appended and consumers have fetched here since the broker's start, and `led`, the partitions that the broker
leads, each as its number, end offset and bytes."""
