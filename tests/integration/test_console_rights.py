"""The console of a cluster with users and ACLs: viewers log in, and see what the rules let them see."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from headrace.cli.main import cli
from headrace.testing.cluster import Cluster

SECONDS = 120.0
PASSWORD = "a-long-password"


class Viewer:
    def __init__(self, url: str, user: str, password: str = PASSWORD) -> None:
        self._url = url
        self._header = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def get(self, path: str) -> tuple[int, str]:
        request = urllib.request.Request(self._url + path, headers={"Authorization": self._header})
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def json(self, path: str) -> Any:
        return json.loads(self.get(f"{path}?format=json")[1])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Cluster({"offsets.topic.num.partitions": "1"}, secure=True) as cluster:
        properties = str(cluster.client_files.java)
        environment = {"HEADRACE_BOOTSTRAP": cluster.bootstrap, "HEADRACE_COMMAND_CONFIG": properties}

        def run(*args: str, stdin: str | None = None) -> None:
            result = CliRunner().invoke(cli, args, input=stdin, env=environment)
            assert result.exit_code == 0, (args, result.output)

        for topic in ("orders", "salaries", "public"):
            cluster.create_topic(topic)
        producer = Producer(cluster.client_config)
        for topic in ("orders", "salaries", "public"):
            producer.produce(topic, f"record of {topic}".encode())
        assert producer.flush(SECONDS) == 0
        for user in ("alice", "nobody"):
            run("user", "create", user, "--password-stdin", stdin=f"{PASSWORD}\n")
        run("acl", "grant", "alice", "consume", "orders", "--group", "billing")
        run("acl", "add", "--allow-principal", "alice", "--operation", "describe", "--topic", "public")
        words = ["console", "-b", cluster.bootstrap, "--command-config", properties, "--port", "0"]
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace", *words, "--authentication", "basic", "--interval", "1"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        address = process.stdout.readline().strip().removeprefix("ready url=")
        try:
            _until_seen(Viewer(address, "alice"))
            yield address
        finally:
            process.terminate()
            process.wait(SECONDS)
            process.stdout.close()


def _until_seen(viewer: Viewer) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        status, text = viewer.get("/topics")
        if status == 200 and "orders" in text:
            return
        assert time.monotonic() < deadline, (status, text)
        time.sleep(0.2)


def test_whoever_does_not_log_in_sees_nothing(url: str) -> None:
    for path in ("/", "/topics", "/static/console.css", "/nope"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url + path)
        assert refused.value.code == 401
        assert "Basic" in refused.value.headers["WWW-Authenticate"]
        assert refused.value.headers["Content-Security-Policy"]
        refused.value.close()
    assert Viewer(url, "alice", "wrong").get("/")[0] == 401


def test_a_viewer_sees_what_the_rules_allow(url: str) -> None:
    alice = Viewer(url, "alice")
    listing = alice.json("/topics")["listing"]
    assert [row["name"] for row in listing["rows"]] == ["orders", "public"]
    assert alice.json("/")["totals"]["topics"] == 2
    status, page = alice.get("/topics/orders/records")
    assert (status, "record of orders" in page) == (200, True)
    status, page = alice.get("/topics/public/records")
    assert (status, "record of public" in page) == (200, False)
    assert "that takes READ on it" in page
    assert alice.get("/topics/public/records/0/0")[0] == 404
    for path in ("/topics/salaries", "/topics/salaries/records", "/topics/salaries/records/0/0"):
        status, page = alice.get(path)
        assert status == 404
        assert "record of salaries" not in page
    assert alice.json("/brokers")["rows"] == []


def test_a_viewer_without_rights_sees_an_empty_cluster(url: str) -> None:
    nobody = Viewer(url, "nobody")
    for path in ("/", "/topics?internal=1", "/groups", "/brokers", "/audit", "/pipeline"):
        status, page = nobody.get(path)
        assert status == 200, path
        for topic in ("orders", "salaries", "public", "__consumer_offsets"):
            assert topic not in page, path
