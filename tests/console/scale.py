"""The console beside real brokers with many topics and groups: how long its lists take, when a browser first
paints them, and what open tabs cost the brokers.

    python -m tests.console.scale --topics 10000 --groups 2000 --tabs 50

What a tab costs is counted in seconds of the brokers' processors, which other work on the machine changes
little. Seconds of the lists and of the browser are of the clock: read them with the load that is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench.process_cost import cpu_seconds
from playwright.sync_api import sync_playwright

from headrace.client.cluster import Cluster
from headrace.client.group_offsets import commit_offsets
from headrace.client.many_topics import NewTopic, create_topics
from headrace.core.ids import TopicPartition
from tests.cluster_process import HeadraceCluster
from tests.console.chromium import launched
from tests.integration.test_console import Console

TIMES: Final = 9
TOPICS_OF_A_GROUP: Final = 5
REFRESH_SECONDS: Final = 5.0
AT_ONCE: Final = 20
LIMIT_SECONDS: Final = 1800.0
PAGES: Final = {
    "Topics": "/topics",
    "Topics, by lag": "/topics?sort=-lag",
    "Topics, a part of the name": "/topics?q=stream-00",
    "a topic": "/topics/{topic}",
    "Groups": "/groups",
    "a group": "/groups/readers-00001",
    "Brokers": "/brokers",
    "Now": "/",
}
PAINTED: Final = ("Topics", "Groups", "Brokers", "Now")


def topic_name(number: int) -> str:
    return f"team-{number % 40:02}.stream-{number:05}"


async def fill(bootstrap: str, topics: int, groups: int, replicas: int) -> None:
    async with Cluster(bootstrap, request_timeout=300.0) as cluster:
        wanted = [NewTopic(topic_name(number), 1, replicas, {}) for number in range(topics)]
        refused = await create_topics(cluster, wanted)
        if refused:
            raise RuntimeError(str(next(iter(refused.values()))))
        print(f"{topics:,} topics are there", flush=True)
        turns = asyncio.Semaphore(AT_ONCE)

        async def commit(number: int) -> None:
            read = [(number * TOPICS_OF_A_GROUP + each) % topics for each in range(TOPICS_OF_A_GROUP)]
            async with turns:
                offsets = {TopicPartition(topic_name(each), 0): 0 for each in read}
                await commit_offsets(cluster, f"readers-{number:05}", offsets)

        await asyncio.gather(*(commit(number) for number in range(groups)))
        print(f"{groups:,} groups have committed", flush=True)


def until_seen(console: Console, topics: int, groups: int) -> float:
    """Seconds until the console knows all of them."""
    began = time.monotonic()
    while time.monotonic() - began < LIMIT_SECONDS:
        status, _ = console.get("/topics?format=json")
        if status == 200:
            seen = console.json("/topics")["listing"]["whole"], console.json("/groups")["listing"]["whole"]
            if seen[0] >= topics and seen[1] >= groups:
                return time.monotonic() - began
        time.sleep(1)
    raise RuntimeError("the console does not get to know the cluster")


class Browser:
    """A connection that is kept, as a browser keeps it."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        assert address.hostname is not None
        self._connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
        self._tag = ""

    def get(self, path: str) -> tuple[float, int]:
        """Seconds and bytes."""
        began = time.monotonic()
        self._connection.request("GET", path, headers={"If-None-Match": self._tag} if self._tag else {})
        answer = self._connection.getresponse()
        length = len(answer.read())
        if answer.status not in (200, 304):
            raise RuntimeError(f"{path}: {answer.status}")
        return time.monotonic() - began, length

    def refresh(self, path: str) -> None:
        """As the console's own script does."""
        try:
            self._connection.request("GET", path, headers={"If-None-Match": self._tag} if self._tag else {})
            answer = self._connection.getresponse()
        except (http.client.HTTPException, OSError):
            self._connection.close()  # it was kept too long; the next request opens another one
            return
        answer.read()
        self._tag = answer.getheader("ETag") or self._tag

    def close(self) -> None:
        self._connection.close()


def listed(url: str, topic: str) -> Iterator[str]:
    browser = Browser(url)
    for name, path in PAGES.items():
        taken = [browser.get(path.format(topic=topic)) for _ in range(TIMES)]
        seconds = [each[0] for each in taken]
        yield (
            f"| {name} | {statistics.median(seconds) * 1000:.0f} ms | {max(seconds) * 1000:.0f} ms"
            f" | {taken[0][1] / 1000:.0f} KB |"
        )
    browser.close()


def painted(url: str) -> Iterator[str]:
    with sync_playwright() as playwright:
        chromium = launched(playwright)
        for name in PAINTED:
            taken = []
            for _ in range(5):
                page = chromium.new_context().new_page()
                page.goto(url + PAGES[name])
                page.wait_for_function(
                    "() => performance.getEntriesByName('first-contentful-paint').length > 0"
                )
                found = page.evaluate(
                    "() => performance.getEntriesByName('first-contentful-paint').map(each => each.startTime)"
                )
                taken += found
                page.context.close()
            yield f"| first paint of {name} | {statistics.median(taken):.0f} ms | {max(taken):.0f} ms | |"
        chromium.close()


def tabs_cost(cluster: HeadraceCluster, url: str, tabs: int, seconds: float) -> float:
    """Of all brokers, in seconds of a processor for a minute with so many tabs open."""
    over = threading.Event()

    def follow(number: int) -> None:
        browser = Browser(url)
        path = list(PAGES.values())[number % len(PAGES)].format(topic=topic_name(number))
        while not over.wait(REFRESH_SECONDS):
            browser.refresh(path)
        browser.close()

    threads = [threading.Thread(target=follow, args=(number,)) for number in range(tabs)]
    for thread in threads:
        thread.start()
    before = sum(cpu_seconds(broker.pid) for broker in cluster.brokers.values())
    time.sleep(seconds)
    spent = sum(cpu_seconds(broker.pid) for broker in cluster.brokers.values()) - before
    over.set()
    for thread in threads:
        thread.join()
    return 60 * spent / seconds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.console.scale", description=__doc__)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=2000)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--tabs", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--only", choices=("lists", "tabs"))
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="console-scale-") as directory,
        HeadraceCluster(Path(directory), 3, {"auto.leader.rebalance.enable": "false"}) as cluster,
    ):
        asyncio.run(fill(cluster.bootstrap, given.topics, given.groups, given.replicas))
        console = Console(cluster.bootstrap, "--interval", "5")
        try:
            print(f"seen after {until_seen(console, given.topics, given.groups):.1f} s", flush=True)
            if given.only != "tabs":
                print("| Page | Median | Largest | Size |\n|---|--:|--:|--:|")
                for line in chain(listed(console.url, topic_name(7)), painted(console.url)):
                    print(line, flush=True)
            if given.only != "lists":
                for tabs in (1, given.tabs, 1, given.tabs):
                    spent = tabs_cost(cluster, console.url, tabs, given.seconds)
                    print(f"{tabs} tabs: {spent:.2f} s of CPU a minute in all brokers", flush=True)
            print("load:", *(f"{each:.1f}" for each in os.getloadavg()))
        finally:
            console.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
