from __future__ import annotations

import re
from pathlib import Path

from headrace.core.ports_coordination import SessionState
from headrace.metrics.collector import BrokerCollector
from headrace.metrics.registry import BrokerMetrics, LinkGauges, PartitionGauges, ZooKeeperGauges
from headrace.metrics.tiering import TierGauges

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_the_page_lists_what_is_exported_and_nothing_else() -> None:
    metrics = BrokerMetrics()
    metrics.read_partitions = lambda: [PartitionGauges("t", 0, 1, 2, 3, 4, lag=0)]
    metrics.read_zookeeper = lambda: ZooKeeperGauges(SessionState.CONNECTED, 0.0)
    metrics.read_certificates = lambda: [("SSL", 60.0)]
    metrics.read_links = lambda: [LinkGauges("t", 0, 1, 0, is_stopped=False)]
    metrics.read_tiers = lambda: [TierGauges("t", 0, 0, 0.0, 0, 0)]
    metrics.read_loop_seconds = lambda: 0.0
    exported = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in BrokerCollector(metrics, lambda: 0.0).collect()
    }
    listed = set(re.findall(r"^\| `((?:kafka|headrace)_\w+)`", PAGE.read_text(), re.MULTILINE))
    assert listed == exported
