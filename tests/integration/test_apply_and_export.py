"""`headrace apply` and `headrace export` on real brokers."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.client.cluster import Cluster as Client
from headrace.client.errors import ClientFailure
from headrace.desired.changes import TopicCreation
from headrace.desired.wire import WireAdministration
from headrace.protocol.message import Message
from headrace.testing.cluster import Cluster


class Commands:
    def __init__(self, cluster: Cluster, *, secure: bool) -> None:
        self.environment = {"HEADRACE_BOOTSTRAP": cluster.bootstrap}
        if secure:
            self.environment["HEADRACE_COMMAND_CONFIG"] = str(cluster.client_files.java)

    def __call__(self, *args: str, stdin: str | None = None, code: int = 0, **environment: str) -> Any:
        result = CliRunner().invoke(
            cli, args, input=stdin, env={**self.environment, **environment}, prog_name="headrace"
        )
        assert result.exit_code == code, (args, result.output, result.exception)
        return result


@pytest.fixture(scope="module")
def plain() -> Iterator[Commands]:
    with Cluster() as cluster:
        yield Commands(cluster, secure=False)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        (tmp_path / "cluster.yaml").write_text(text)
        return str(tmp_path / "cluster.yaml")

    return write


def test_what_one_cluster_exports_another_becomes(tmp_path: Path) -> None:
    with Cluster(secure=True) as first, Cluster(secure=True) as second:
        ours, theirs = Commands(first, secure=True), Commands(second, secure=True)
        ours("topic", "create", "shop.orders", "-p", "3", "-c", "retention.ms=1000", "-c", "preallocate=true")
        ours("topic", "create", "no")
        ours("user", "create", "alice", "--mechanism", "SCRAM-SHA-256", "--iterations", "8192")
        ours("acl", "grant", "alice", "consume", "shop.", "--prefix", "--group", "g")
        ours("quota", "set", "--user", "alice", "--client-id", "1.10", "producer_byte_rate=1.5MB")
        ours("quota", "set", "--user-default", "request_percentage=12.5")
        exported = ours("export").stdout
        file = tmp_path / "cluster.yaml"
        file.write_text(exported)

        assert "nothing to change" in ours("apply", "-f", str(file), "--check").stderr
        found = theirs("apply", "-f", str(file), "--check", code=2)
        assert "+ topic shop.orders" in found.stdout
        lacking = theirs("apply", "-f", str(file), "--yes", code=1)
        assert "of the environment, PASSWORD_ALICE: there is no such variable" in lacking.stderr
        assert "shop.orders" not in theirs("topic", "list").stdout, "nothing is begun that cannot be ended"
        done = theirs("apply", "-f", str(file), "--yes", PASSWORD_ALICE="hunter2hunter2")
        assert "hunter2" not in done.output
        assert theirs("export").stdout == exported
        theirs("apply", "-f", str(file), "--check")
        assert "done" in json.loads(theirs("apply", "-f", str(file), "--yes", "--json").stdout)


def test_the_password_of_the_file_logs_in(tmp_path: Path) -> None:
    with Cluster(secure=True) as cluster:
        run = Commands(cluster, secure=True)
        (tmp_path / "password").write_text("first-password\n")
        file = tmp_path / "cluster.yaml"
        file.write_text(
            "owns: {users: [alice], acls: [alice]}\n"
            "users: {alice: {password: {file: password}}}\n"
            "acls: [{principal: alice, grant: consume, topic: t}]\n"
        )
        run("topic", "create", "t")
        run("apply", "-f", str(file), "--yes")
        assert logs_in(cluster, tmp_path, "first-password")
        (tmp_path / "password").write_text("second-password\n")
        assert "nothing to change" in run("apply", "-f", str(file), "--yes").stderr
        run("apply", "-f", str(file), "--yes", "--set-password", "alice")
        assert logs_in(cluster, tmp_path, "second-password")
        assert not logs_in(cluster, tmp_path, "first-password")


def logs_in(cluster: Cluster, directory: Path, password: str) -> bool:
    text = cluster.client_files.java.read_text()
    own = next(line for line in text.splitlines() if line.startswith("sasl.jaas.config"))
    jaas = (
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required"
        f' username="alice" password="{password}";'
    )
    (directory / "alice.properties").write_text(text.replace(own, jaas))
    # A process of its own: the loop of one whose log-in failed leaves its socket to the collector.
    words = (
        "topic",
        "list",
        "-b",
        cluster.bootstrap,
        "--command-config",
        str(directory / "alice.properties"),
    )
    return subprocess.run([sys.executable, "-m", "headrace", *words], capture_output=True).returncode == 0


def test_a_user_without_the_right_changes_nothing(tmp_path: Path) -> None:
    with Cluster(secure=True) as cluster:
        admin = Commands(cluster, secure=True)
        admin("user", "create", "bob", "--client-config", str(tmp_path / "bob.properties"))
        (tmp_path / "c.yaml").write_text("owns: {topics: ['*']}\ntopics: {t: {partitions: 1}}\n")
        refused = admin(
            *("apply", "-f", str(tmp_path / "c.yaml"), "--yes"),
            code=1,
            HEADRACE_COMMAND_CONFIG=str(tmp_path / "bob.properties"),
        )
        assert "this user has no right to do that" in refused.stderr
        assert admin("topic", "list", "--json").stdout.strip() == "[]"


def test_a_topic_grows_and_its_settings_follow_the_file(
    plain: Commands, written: Callable[[str], str]
) -> None:
    plain("topic", "create", "grow", "-p", "2", "-c", "retention.ms=1000")
    file = written("owns: {topics: [grow]}\ntopics: {grow: {partitions: 4, settings: {preallocate: True}}}")
    asked = plain("apply", "-f", file, code=1)
    assert asked.stdout.splitlines() == [
        "~ topic grow",
        "    partitions: 2 -> 4",
        "    preallocate: (default) -> true",
        "    retention.ms: 1000 -> (default)",
    ]
    assert "there is nobody to ask" in asked.stderr
    plain("apply", "-f", file, "--check", code=2)
    plain("apply", "-f", file, "--yes")
    plain("apply", "-f", file, "--check")
    assert json.loads(plain("topic", "list", "--json").stdout)[0]["partitions"] == 4


def test_what_cannot_be_done_is_said_before_anything_is_changed(
    plain: Commands, written: Callable[[str], str]
) -> None:
    plain("topic", "create", "kept.a", "-p", "2")
    address = written("owns: {quotas: ['10.*']}\nquotas:\n- {ip: 10.0.0.999, connection_creation_rate: 5}\n")
    assert "'10.0.0.999' is no IP address" in plain("apply", "-f", address, "--dry-run", code=1).stderr
    file = written(
        "owns: {topics: [kept.*]}\n"
        "topics: {kept.a: {partitions: 1}, kept.b: {replicas: 3}, kept.c: ,"
        " kept.d: {settings: {retention.ms: soon, cleanup.policy: never}},"
        " kept.e: {settings: {retention.mss: 1}}}"
    )
    refused = plain("apply", "-f", file, "--yes", code=1).stderr
    for said in (
        "topic kept.a has 2 partitions and cannot have 1",
        "topic kept.b: 3 replicas need",
        "retention.ms=soon",
        "cleanup.policy=never",
        "kept.e",
    ):
        assert said in refused
    names = {each["name"] for each in json.loads(plain("topic", "list", "--json").stdout)}
    assert {each for each in names if each.startswith("kept.")} == {"kept.a"}


def test_more_partitions_than_one_request_may_add_are_asked_for_in_several(
    plain: Commands, written: Callable[[str], str]
) -> None:
    names = ", ".join(f"wide.{number}: {{partitions: 4000}}" for number in range(3))
    plain("apply", "-f", written(f"owns: {{topics: [wide.*]}}\ntopics: {{{names}}}"), "--dry-run")


def test_nothing_is_deleted_by_one_word(plain: Commands, written: Callable[[str], str]) -> None:
    for name in ("del.empty", "del.full", "del.read"):
        plain("topic", "create", name)
    plain("produce", "del.full", stdin="1\n2\n")
    plain("produce", "del.read", stdin="1\n")
    plain("consume", "del.read", "--group", "billing", "-c", "1")
    plain("topic", "trim", "del.read", "--to", "end")
    without = written("owns: {topics: [del.*]}\ntopics: {}")
    assert (
        "needs `prune: true` in the file" in plain("apply", "-f", without, "--yes", "--prune", code=1).stderr
    )
    plain("apply", "-f", without, "--check")
    both = written("owns: {topics: [del.*]}\nprune: true\ntopics: {}")
    assert "3 things that the file owns" in plain("apply", "-f", both, "--yes").stderr
    plain("apply", "-f", both, "--check", code=2)
    refused = plain("apply", "-f", both, "--yes", "--prune", code=1).stderr
    assert "topic del.full has 2 records: `--yes-delete del.full` deletes it" in refused
    assert "topic del.read is read by billing" in refused
    assert "del.empty" in plain("topic", "list").stdout
    plain("apply", "-f", both, "--yes", "--prune", "--yes-delete", "del.full", "--yes-delete", "del.read")
    assert "del." not in plain("topic", "list").stdout


def test_a_thousand_topics_cost_a_few_requests(
    plain: Commands, written: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one for each of them, whatever their number is."""
    from headrace.client.connection import Connection

    lines = "\n".join(
        f"  many.{number}: {{partitions: 1, settings: {{retention.ms: 1000}}}}" for number in range(1000)
    )
    file = written(f"owns: {{topics: [many.*]}}\ntopics:\n{lines}\n")
    asked: list[str] = []
    original = Connection.request

    async def counted(self: Connection, message: Message, *args: Any, **kwargs: Any) -> Any:
        asked.append(type(message).__name__)
        return await original(self, message, *args, **kwargs)

    monkeypatch.setattr(Connection, "request", counted)
    plain("apply", "-f", file, "--yes")
    assert len(asked) <= 40, asked
    asked.clear()
    plain("apply", "-f", file, "--check")
    assert len(asked) <= 30, asked


class Terminal:
    """The command with somebody at the keyboard, who types all at once."""

    def __init__(self, commands: Commands) -> None:
        self._environment = {**os.environ, **commands.environment}

    def __call__(self, *args: str, typed: str, code: int) -> str:
        master, slave = pty.openpty()
        try:
            os.write(master, typed.encode())
            done = subprocess.run(
                [sys.executable, "-m", "headrace", *args],
                env=self._environment,
                stdin=slave,
                capture_output=True,
                text=True,
            )
        finally:
            os.close(master)
            os.close(slave)
        assert done.returncode == code, done
        return done.stdout + done.stderr


def test_somebody_at_a_terminal_is_asked(plain: Commands, written: Callable[[str], str]) -> None:
    plain("topic", "create", "ask.a", "ask.b")
    plain("produce", "ask.a", stdin="1\n")
    terminal = Terminal(plain)
    file = written("owns: {topics: [ask.*]}\nprune: true\ntopics: {ask.b: {partitions: 2}}")
    assert "apply this change? [y/N]" in terminal("apply", "-f", file, typed="\n", code=130)
    said = terminal("apply", "-f", file, "--prune", typed="ask.b\n", code=1)
    assert "topic ask.a has 1 record. Type its name to delete it" in said
    assert "apply these 2 changes" in terminal("apply", "-f", file, "--prune", typed="ask.a\nn\n", code=130)
    plain("apply", "-f", file, "--check", code=2)
    terminal("apply", "-f", file, "--prune", typed="ask.a\ny\n", code=0)
    plain("apply", "-f", file, "--check")


def test_what_somebody_else_made_meanwhile_is_said(plain: Commands) -> None:
    """Two plans of the same file, of which one is late."""
    creations = [TopicCreation("late", 1, 1, {})]

    async def twice() -> None:
        async with Client(plain.environment["HEADRACE_BOOTSTRAP"]) as client:
            administration = WireAdministration(client)
            await administration.create_topics(creations)
            await administration.create_topics(creations)

    with pytest.raises(ClientFailure, match="topic late was made meanwhile by somebody else"):
        asyncio.run(twice())
