"""The console and the exporter in front of Headrace and of Apache Kafka: what both tell is the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from tests.broker_process import BrokerProcess
from tests.compatibility.conftest import Run

SECONDS = 240.0


@contextmanager
def serving(*words: str) -> Iterator[str]:
    """A command that serves until it is told to stop; where it does."""
    process = subprocess.Popen([sys.executable, "-m", "headrace", *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip().removeprefix("ready url=")
    finally:
        process.terminate()
        code = process.wait(SECONDS)
        process.stdout.close()
    assert code == 0


def got(url: str) -> str:
    """Also what is said while nothing is known yet."""
    try:
        with urllib.request.urlopen(url) as answer:
            text: str = answer.read().decode()
    except urllib.error.HTTPError as error:
        if error.code != 503:
            raise
        return error.read().decode()
    return text


def three_of_which_one_is_read(run: Run, topic: str, group: str) -> None:
    run("topic", "create", topic, "--partitions", "1")
    run("produce", topic, stdin="tea\nrice\nsalt\n")
    run("consume", topic, "--group", group, "--exit")
    run("group", "reset", group, "--to-offset", "1", "--topic", topic, "--execute")


def test_the_console(run: Run, broker: BrokerProcess) -> None:
    three_of_which_one_is_read(run, "watched", "watchers")
    with serving("console", "-b", broker.bootstrap, "--port", "0", "--interval", "1") as url:
        deadline = time.monotonic() + SECONDS
        while True:
            told = json.loads(got(f"{url}/topics?q=watched&format=json"))
            rows = [] if told["look"] is None else told["listing"]["rows"]
            found = {row["name"]: (row["records"], row["lag"]) for row in rows}
            if found.get("watched") == (3, 2):
                break
            assert time.monotonic() < deadline, found
            time.sleep(0.2)
        for page in ("", "topics/watched", "groups", "groups/watchers", "brokers", "moves", "transactions"):
            assert "<h1>" in got(f"{url}/{page}"), page
        assert "salt" in got(f"{url}/topics/watched/records")


def test_the_exporter(run: Run, broker: BrokerProcess) -> None:
    three_of_which_one_is_read(run, "scraped", "scrapers")
    lag = re.compile(
        r'^kafka_consumergroup_lag\{consumergroup="scrapers",partition="0",topic="scraped"\} 2(\.0)?$', re.M
    )
    with serving("exporter", "-b", broker.bootstrap, "--listen", "127.0.0.1:0", "--interval", "1") as url:
        deadline = time.monotonic() + SECONDS
        while not lag.search(text := got(f"{url}/metrics")):
            assert time.monotonic() < deadline, text
            time.sleep(0.2)
