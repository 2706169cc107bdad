"""The metrics say of what the time of a request was: work, waiting, or a quota."""

from __future__ import annotations

import time
import urllib.request
from contextlib import closing

from prometheus_client.parser import text_string_to_metric_families

from headrace.testing.cluster import Cluster
from tests.integration.test_quotas import BOUND, TOPIC, Client, operator_of, set_quota
from tests.requests import fetch_request

WAIT_MS = 700


def sum_of(cluster: Cluster, part: str, api: str) -> float:
    """Milliseconds."""
    assert cluster.metrics_url is not None
    with urllib.request.urlopen(cluster.metrics_url, timeout=30) as page:
        text = page.read().decode()
    wanted = f"kafka_network_requestmetrics_{part}timems_sum"
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == wanted and sample.labels["request"] == api
    )


def test_waiting_is_told_from_work_and_from_a_quota() -> None:
    properties = {"num.partitions": "1", "headrace.metrics.listener": "127.0.0.1:0"}
    with (
        Cluster(properties) as cluster,
        operator_of(cluster) as operator,
        closing(Client(cluster, "one")) as client,
    ):
        client.produce()
        assert sum_of(cluster, "throttle", "Produce") == 0
        before = time.monotonic()
        client.fetch(fetch_request(TOPIC, offset=1, max_wait_ms=WAIT_MS, min_bytes=1))
        took_ms = (time.monotonic() - before) * 1000
        remote, local = sum_of(cluster, "remote", "Fetch"), sum_of(cluster, "local", "Fetch")
        assert WAIT_MS - 50 < remote < took_ms
        assert 0 < local < took_ms - WAIT_MS + 50
        assert remote + local <= sum_of(cluster, "total", "Fetch") + 1
        set_quota(operator, {"client-id": "one"}, "producer_byte_rate", BOUND)
        told_ms = 0
        while not told_ms:
            told_ms = client.produce().throttle_time_ms
        assert sum_of(cluster, "throttle", "Produce") == told_ms
        assert sum_of(cluster, "throttle", "Fetch") == 0
