"""The commands for quotas, against a scripted broker that keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from headrace.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest
from tests.unit.cli.serving import Run, runner, serving
from tests.unit.client.scripted_security import ScriptedSecurity


@pytest.fixture
def script() -> Iterator[ScriptedSecurity]:
    broker = ScriptedSecurity()
    with serving(broker):
        yield broker


@pytest.fixture
def run(script: ScriptedSecurity) -> Run:
    return runner(script.address)


def test_set_understands_rates(run: Run, script: ScriptedSecurity) -> None:
    result = run("quota", "set", "--user", "alice", "producer_byte_rate=1.5MB", "request_percentage=12.5")
    assert script.quotas == {(("user", "alice"),): {"producer_byte_rate": 1.5e6, "request_percentage": 12.5}}
    assert result.stdout.splitlines() == [
        "set producer_byte_rate=1500000 of user alice",
        "set request_percentage=12.5 of user alice",
    ]


def test_entities_are_parts_and_defaults(run: Run, script: ScriptedSecurity) -> None:
    run("quota", "set", "--user", "alice", "--client-id", "app", "consumer_byte_rate=1")
    run("quota", "set", "--user-default", "consumer_byte_rate=2")
    run("quota", "set", "--ip", "10.0.0.7", "connection_creation_rate=3")
    assert set(script.quotas) == {
        (("client-id", "app"), ("user", "alice")),
        (("user", None),),
        (("ip", "10.0.0.7"),),
    }
    lines = run("quota", "list").stdout.splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == [
        "client-id app, user alice",
        "ip 10.0.0.7",
        "user (default)",
    ]
    told = json.loads(run("quota", "list", "--user", "alice", "-o", "json").stdout)
    assert told == [
        {"entity": {"client-id": "app", "user": "alice"}, "quotas": {"consumer_byte_rate": 1}},
    ]


def test_remove_some_or_all(run: Run, script: ScriptedSecurity) -> None:
    run("quota", "set", "--user", "alice", "producer_byte_rate=1", "consumer_byte_rate=2")
    run("quota", "remove", "--user", "alice", "producer_byte_rate")
    assert script.quotas == {(("user", "alice"),): {"consumer_byte_rate": 2.0}}
    assert (
        "has no quota producer_byte_rate"
        in run("quota", "remove", "--user", "alice", "producer_byte_rate", code=1).stderr
    )
    assert run("quota", "remove", "--user", "alice").stdout == "removed consumer_byte_rate of user alice\n"
    assert script.quotas == {}
    assert "user alice has no quota\n" in run("quota", "remove", "--user", "alice", code=1).stderr


def test_remove_of_a_user_leaves_the_user_with_a_client_id(run: Run, script: ScriptedSecurity) -> None:
    run("quota", "set", "--user", "alice", "--client-id", "app", "consumer_byte_rate=1")
    run("quota", "remove", "--user", "alice", code=1)
    assert len(script.quotas) == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("producer_byte_rate=1",), "say whose quota"),
        (("--user", "a", "--user-default", "producer_byte_rate=1"), "exclude each other"),
        (("--user", "a", "--ip", "1.2.3.4", "producer_byte_rate=1"), "cannot be combined"),
        (("--user", "a", "producer_byte_rate=0"), "is not a rate"),
        (("--user", "a", "request_percentage=-1"), "a number above 0"),
        (("--user", "a", "request_percentage=nan"), "a number above 0"),
        (("--user", "a", "produce_rate=1"), "'produce_rate' is not a quota"),
        (("--user", "a", "producer_byte_rate"), "is not NAME=VALUE"),
    ],
)
def test_what_cannot_be_set_is_a_sentence(
    run: Run, script: ScriptedSecurity, words: tuple[str, ...], text: str
) -> None:
    assert text in run("quota", "set", *words, code=2).stderr
    assert script.seen(AlterClientQuotasRequest) == []
