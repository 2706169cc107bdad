"""The console of a cluster with users and ACLs: viewers log in, see what the rules let them see, and change
what the rules let them change."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from headrace.cli.main import cli
from headrace.testing.cluster import Cluster

SECONDS = 120.0
PASSWORD = "a-long-password"


class Viewer:
    def __init__(self, url: str, user: str, password: str = PASSWORD) -> None:
        self._url = url
        self._header = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def get(self, path: str, fields: Mapping[str, str] | None = None) -> tuple[int, str]:
        """With fields: as a form of a page sends them. A redirect is followed."""
        body = None if fields is None else urlencode(fields).encode()
        headers = {"Authorization": self._header, "Origin": self._url}
        request = urllib.request.Request(self._url + path, body, headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def json(self, path: str) -> Any:
        return json.loads(self.get(f"{path}{'&' if '?' in path else '?'}format=json")[1])

    def agree(self, path: str, **more: str) -> Any:
        """To the plan of this page; what came of it."""
        view = self.json(path)
        fields = {**dict(view["fields"]), "confirmation": view["confirmation"], **more}
        status, text = self.get(f"{path.partition('?')[0]}?format=json", fields)
        assert status == 200, text
        return json.loads(text)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster({"offsets.topic.num.partitions": "1"}, secure=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def url(cluster: Cluster) -> Iterator[str]:
    properties = str(cluster.client_files.java)
    environment = {"HEADRACE_BOOTSTRAP": cluster.bootstrap, "HEADRACE_COMMAND_CONFIG": properties}

    def run(*args: str, stdin: str | None = None) -> None:
        result = CliRunner().invoke(cli, args, input=stdin, env=environment)
        assert result.exit_code == 0, (args, result.output)

    for topic in ("orders", "salaries", "public", "scratch"):
        cluster.create_topic(topic)
    producer = Producer(cluster.client_config)
    for topic in ("orders", "salaries", "public"):
        producer.produce(topic, f"record of {topic}".encode())
    assert producer.flush(SECONDS) == 0
    for user in ("alice", "nobody", "owner"):
        run("user", "create", user, "--password-stdin", stdin=f"{PASSWORD}\n")
    run("acl", "grant", "alice", "consume", "orders", "--group", "billing")
    run("acl", "add", "--allow-principal", "alice", "--operation", "describe", "--topic", "public")
    for operation in ("read", "alter", "alter-configs", "describe-configs", "delete"):
        run("acl", "add", "--allow-principal", "owner", "--operation", operation, "--topic", "scratch")
    words = ["console", "-b", cluster.bootstrap, "--command-config", properties, "--port", "0"]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "headrace", *words),
            *("--authentication", "basic", "--interval", "1", "--allow-changes"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip().removeprefix("ready url=")
    try:
        until_seen(Viewer(address, "alice"))
        yield address
    finally:
        process.terminate()
        process.wait(SECONDS)
        process.stdout.close()


def until_seen(viewer: Viewer) -> None:
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


def test_an_owner_changes_a_topic_and_ends_it(url: str, cluster: Cluster) -> None:
    owner = Viewer(url, "owner")
    plan = "/topics/scratch/settings/plan?partitions=3&setting.retention.ms=60000"
    planned = owner.json(plan)
    assert planned["principal"] == "User:owner"
    assert [each["what"] for each in planned["lines"][0]["differences"]] == ["partitions", "retention.ms"]
    made = owner.agree(plan)
    assert (made["outcome"], made["left"], made["principal"]) == ("done", [], "User:owner")
    other = AdminClient({**cluster.client_config})
    assert len(other.list_topics("scratch", SECONDS).topics["scratch"].partitions) == 3
    resource = ConfigResource(ConfigResource.Type.TOPIC, "scratch")
    (asked,) = other.describe_configs([resource]).values()
    assert asked.result(SECONDS)["retention.ms"].value == "60000"
    refused = owner.json("/topics/scratch/settings/plan?partitions=2&setting.retention.ms=soon")
    assert (refused["confirmation"], len(refused["refused"])) == ("", 1)
    deletion = "/topics/scratch/deletion"
    status, page = owner.get(deletion, {"confirmation": owner.json(deletion)["confirmation"], "typed": "x"})
    assert (status, "Nothing was changed" in page) == (409, True)
    assert owner.agree(deletion, typed="scratch")["outcome"] == "done"
    assert "scratch" not in other.list_topics(timeout=SECONDS).topics


def test_whoever_reads_resets_their_group_and_nothing_else(url: str, cluster: Cluster) -> None:
    reader = Consumer({**cluster.client_config, "group.id": "billing", "enable.auto.commit": False})
    place = TopicPartition("orders", 0, 1)
    reader.commit(offsets=[place], asynchronous=False)
    alice = Viewer(url, "alice")
    plan = "/groups/billing/reset/plan?to=earliest&topic=orders"
    (shift,) = alice.json(plan)["shifts"]
    assert (shift["before"], shift["after"], shift["again"]) == (1, 0, 1)
    assert alice.agree(plan)["left"] == []
    assert reader.committed([place], SECONDS)[0].offset == 0
    reader.close()
    for viewer, path in (
        (alice, "/topics/orders/settings/plan?setting.retention.ms=1"),
        (Viewer(url, "nobody"), "/topics/orders/deletion"),
        (Viewer(url, "nobody"), "/groups/billing/reset/plan?to=earliest"),
        (Viewer(url, "nobody"), "/topics/orders/settings/plan?setting.retention.ms=1"),
    ):
        status, page = viewer.get(path)
        assert (status, "no right to do that" in page) == (409, True), page
    assert "settings" not in alice.get("/topics/orders")[1]
    assert [made["title"] for made in alice.json("/changes")["made"]] == ["Reset group billing"]
    assert Viewer(url, "nobody").json("/changes")["made"] == []


def test_a_yes_to_a_deletion_without_the_right_says_what_the_brokers_said(url: str, cluster: Cluster) -> None:
    made = Viewer(url, "alice").agree("/topics/orders/deletion", typed="orders")
    assert made["outcome"] == "failed"
    assert "this user has no right to do that" in made["said"]
    assert "orders" in AdminClient({**cluster.client_config}).list_topics(timeout=SECONDS).topics
