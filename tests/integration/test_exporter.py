"""`headrace exporter` in front of a real broker: its lag is what another client counts."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import urllib.request

from confluent_kafka import Consumer, TopicPartition

from headrace.testing.cluster import Cluster
from tests.integration.real_client import create, send_all, watermarks

SECONDS = 120.0


def until(url: str, series: str) -> float:
    deadline = time.monotonic() + SECONDS
    while True:
        with urllib.request.urlopen(f"{url}/metrics") as answer:
            text = answer.read().decode()
        found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
        if found is not None:
            return float(found.group(1))
        assert time.monotonic() < deadline, text
        time.sleep(0.1)


def test_lags_of_a_group_until_the_broker_is_gone() -> None:
    with Cluster({"offsets.topic.num.partitions": "1"}) as cluster:
        create(cluster.bootstrap, "orders", 1)
        send_all(cluster.bootstrap, "orders", [b"%d" % number for number in range(30)])
        reader = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "billing"})
        reader.commit(offsets=[TopicPartition("orders", 0, 12)], asynchronous=False)
        words = ["exporter", "-b", cluster.bootstrap, "--listen", "127.0.0.1:0", "--interval", "1"]
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace", *words], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        url = process.stdout.readline().strip().removeprefix("ready url=")
        labels = '{consumergroup="billing",partition="0",topic="orders"}'
        lag = until(url, f"kafka_consumergroup_lag{labels}")
        assert lag == watermarks(cluster.bootstrap, "orders")[1] - 12
        assert until(url, f"kafka_consumergroup_current_offset{labels}") == 12
        assert until(url, f"kafka_consumergroup_lag_seconds{labels}") > 0
        reader.close()
    assert until(url, "headrace_exporter_up") >= 0
    deadline = time.monotonic() + SECONDS
    while until(url, "headrace_exporter_up"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        assert b"kafka_consumergroup_lag" not in answer.read()
    process.terminate()
    assert process.wait(SECONDS) == 0
    process.stdout.close()
