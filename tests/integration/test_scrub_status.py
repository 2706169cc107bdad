"""What `headrace cluster status` shows of a scrub that is under way."""

from __future__ import annotations

import asyncio
import json
import os
import time
from typing import Any

from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.client import admin
from headrace.client.cluster import Cluster
from headrace.client.producer import Producer
from headrace.protocol.records import NewRecord
from headrace.testing import cluster as testing

SEGMENT = 1_048_576


def fill(bootstrap: str) -> None:
    async def run() -> None:
        async with Cluster(bootstrap) as cluster:
            await admin.create_topic(cluster, "t", partitions=8, configs={"segment.bytes": str(SEGMENT)})
            producer = Producer(cluster)
            for _ in range(60):
                await producer.send("t", NewRecord(os.urandom(100_000)), 0)
            await producer.flush()

    asyncio.run(run())


def look(bootstrap: str) -> tuple[dict[str, Any], str]:
    shown = [
        CliRunner().invoke(cli, ["cluster", "status", "-b", bootstrap, *more]) for more in (["--json"], [])
    ]
    assert [each.exit_code for each in shown] == [0, 0], shown[0].output
    scrub = json.loads(shown[0].stdout)["brokers"][0]["scrub"]
    return scrub, shown[1].stdout.splitlines()[2].split("controller")[1].strip()


def test_progress_is_counted_in_bytes_and_ends_with_a_date() -> None:
    """All that is sealed is in the first of eight partitions: counted by partitions nothing moves in it."""
    properties = {"headrace.log.scrub.interval.ms": "2000", "headrace.log.scrub.bytes.per.second": "1500000"}
    with testing.Cluster(properties) as running:
        fill(running.bootstrap)
        seen: set[int] = set()
        deadline = time.monotonic() + 60
        while True:
            assert time.monotonic() < deadline, seen
            scrub, cell = look(running.bootstrap)
            seen.add(scrub["percent"])
            if scrub["percent"] == 100 and scrub["last_ended_ms"] and any(0 < p < 100 for p in seen):
                break
            time.sleep(0.1)
        assert cell.endswith("ago"), cell
        assert scrub["damage_found"] == 0
