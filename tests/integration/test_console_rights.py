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
        return self.yes(path, self.json(path), **more)

    def write(self, topic: str, **fields: str) -> Any:
        """By the form of a record; what came of it."""
        path = f"/topics/{topic}/produce/plan"
        status, text = self.get(f"{path}?format=json", fields)
        assert status == 200, text
        return self.yes(path, json.loads(text))

    def yes(self, path: str, view: Any, **more: str) -> Any:
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
    cluster.create_topic("notes", partitions=3)
    producer = Producer(cluster.client_config)
    for topic in ("orders", "salaries", "public"):
        producer.produce(topic, f"record of {topic}".encode())
    assert producer.flush(SECONDS) == 0
    for user in ("alice", "nobody", "owner"):
        run("user", "create", user, "--password-stdin", stdin=f"{PASSWORD}\n")
    run("acl", "grant", "alice", "consume", "orders", "--group", "billing")
    run("acl", "add", "--allow-principal", "alice", "--operation", "describe", "--topic", "public")
    for operation in ("read", "write"):
        run("acl", "add", "--allow-principal", "owner", "--operation", operation, "--topic", "notes")
    run("acl", "add", "--allow-principal", "alice", "--operation", "write", "--topic", "notes")
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
    assert [row["name"] for row in listing["rows"]] == ["notes", "orders", "public"]
    assert alice.json("/")["totals"]["topics"] == 3
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


def test_records_are_written_and_copied_as_whoever_may(url: str, cluster: Cluster) -> None:
    owner, alice = Viewer(url, "owner"), Viewer(url, "alice")
    made = owner.write("notes", key="k", value="two\r\nlines", headers="trace=a=1")
    assert (made["outcome"], made["left"], made["principal"]) == ("done", None, "User:owner")
    assert "lines" not in json.dumps(made)
    assert owner.write("notes", key="/w==", value="AP8A", form="base64")["outcome"] == "done"
    assert owner.write("notes", key="k", no_value="1")["outcome"] == "done"
    written = everything(cluster, "notes")
    keyed = [(key, value, headers) for _, _, key, value, headers in written if key == b"k"]
    assert keyed == [(b"k", b"two\nlines", [("trace", b"a=1")]), (b"k", None, [])]
    assert (b"\xff", b"\x00\xff\x00") in [(key, value) for _, _, key, value, _ in written]
    assert all(record[1] > 1_700_000_000_000 for record in written), "a record has the time of its writing"
    chosen = ", ".join(place for place, *_ in written)
    path = f"/topics/notes/replay/plan?{urlencode({'records': chosen, 'to': 'notes', 'where': 'same'})}"
    assert owner.agree(path)["outcome"] == "done"
    doubled = everything(cluster, "notes")
    assert sorted(map(contents, doubled), key=repr) == sorted(2 * list(map(contents, written)), key=repr)
    copied = alice.agree("/topics/orders/replay/plan?records=0:0-7&to=notes&where=key")
    assert copied["outcome"] == "done"
    assert copied["title"] == "Copy 1 record of orders into notes"
    assert (None, b"record of orders", []) in map(contents, everything(cluster, "notes"))


def test_nobody_writes_or_copies_what_they_may_not(url: str, cluster: Cluster) -> None:
    owner, alice, nobody = Viewer(url, "owner"), Viewer(url, "alice"), Viewer(url, "nobody")
    before = len(everything(cluster, "orders"))
    for viewer, path, status in (
        (alice, "/topics/orders/produce", 403),
        (alice, "/topics/orders/replay/plan?records=0:0&to=orders", 403),
        (alice, "/topics/orders/replay/plan?records=0:0&to=salaries", 403),
        (alice, "/topics/public/replay", 403),
        (alice, "/topics/salaries/replay/plan?records=0:0&to=notes", 404),
        (owner, "/topics/orders/replay/plan?records=0:0&to=notes", 404),
        (nobody, "/topics/notes/replay", 404),
        (nobody, "/topics/notes/produce", 404),
    ):
        answered, page = viewer.get(path)
        assert answered == status, (path, page)
        assert "record of" not in page
    for viewer, topic in ((alice, "orders"), (nobody, "notes")):
        assert viewer.get(f"/topics/{topic}/produce/plan", {"value": "x"})[0] == 403
    page = alice.get("/topics/orders/records")[1]
    assert ("/topics/orders/replay" in page, "/produce" in page) == (True, False)
    assert len(everything(cluster, "orders")) == before
    assert alice.get("/topics/public/records/tail")[0] == 404
    assert nobody.get("/topics/orders/records/tail")[0] == 404


def everything(cluster: Cluster, topic: str) -> list[tuple[str, int, Any, Any, Any]]:
    """As another client reads it: place, time, key, value, headers."""
    reader = Consumer({**cluster.client_config, "group.id": "reads-all", "enable.auto.commit": False})
    partitions = reader.list_topics(topic, SECONDS).topics[topic].partitions
    found = []
    for partition in sorted(partitions):
        first, end = reader.get_watermark_offsets(TopicPartition(topic, partition), SECONDS)
        reader.assign([TopicPartition(topic, partition, first)])
        for _ in range(end - first):
            record = reader.poll(SECONDS)
            assert record is not None
            assert record.error() is None
            place = f"{partition}:{record.offset()}"
            found.append((place, record.timestamp()[1], record.key(), record.value(), record.headers() or []))
    reader.close()
    return found


def contents(record: tuple[str, int, Any, Any, Any]) -> tuple[Any, Any, Any]:
    return record[2:]


def test_a_yes_to_a_deletion_without_the_right_says_what_the_brokers_said(url: str, cluster: Cluster) -> None:
    made = Viewer(url, "alice").agree("/topics/orders/deletion", typed="orders")
    assert made["outcome"] == "failed"
    assert "this user has no right to do that" in made["said"]
    assert "orders" in AdminClient({**cluster.client_config}).list_topics(timeout=SECONDS).topics
