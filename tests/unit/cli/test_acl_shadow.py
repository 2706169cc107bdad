"""`acl shadow` and `acl suggest`: what clients did beside the rules."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator

import pytest

from headrace.security.acl import Operation, Permission
from tests.ports import own_port
from tests.unit.cli.remembering import ALICE, BOB, Remembering, rule
from tests.unit.cli.serving import Run, runner, serving


@pytest.fixture
def script() -> Iterator[Remembering]:
    broker = Remembering()
    with serving(broker):
        yield broker


@pytest.fixture
def run(script: Remembering) -> Run:
    return runner(script.address)


# --- shadow ---------------------------------------------------------------------------------------------


def test_who_would_be_denied_what(run: Run, script: Remembering) -> None:
    script.remember("denied", ALICE, "WRITE", "t", count=7)
    script.remember("denied", ALICE, "WRITE", "*")
    script.remember("denied", BOB, "READ", "g", "GROUP")
    shown = run("acl", "shadow", code=1)
    lines = [line.split() for line in shown.stdout.splitlines()]
    last = "2025-10-09T08:53:21Z"
    assert lines[1:] == [
        [ALICE, "WRITE", "topic", "t", "10.0.0.1", "7", last],
        [ALICE, "WRITE", "any", "topic", "10.0.0.1", "1", last],
        [BOB, "READ", "group", "g", "10.0.0.1", "1", last],
    ]
    assert "broker 0 (shadow) remembers since 2025-10-09T08:53:20Z" in shown.stderr
    (told,) = json.loads(run("acl", "shadow", "bob", "-o", "json", code=1).stdout)
    assert (told["principal"], told["resource_type"], told["count"]) == (BOB, "GROUP", 1)


def test_what_the_rules_allow_by_now_is_left_out(run: Run, script: Remembering) -> None:
    script.remember("denied", ALICE, "WRITE", "t")
    script.remember("denied", ALICE, "WRITE", "*")
    script.remember("denied", "User:root", "ALTER", "kafka-cluster", "CLUSTER")
    script.rules = {rule(Operation.WRITE)}
    assert "nothing that clients did is denied" in run("acl", "shadow").output
    assert len(run("acl", "shadow", "--all", code=1).stdout.splitlines()) == 4
    script.rules.add(rule(Operation.WRITE)._replace(permission=Permission.DENY))
    assert ALICE in run("acl", "shadow", code=1).stdout


def test_what_was_too_much_is_told(run: Run, script: Remembering) -> None:
    script.configs["headrace.access.overflow"] = "12"
    assert "12 more were too many to remember" in run("acl", "shadow").stderr


@pytest.mark.parametrize("mode", ["none", ""])
def test_a_broker_without_an_authorizer_is_an_error(run: Run, script: Remembering, mode: str) -> None:
    script.configs["headrace.access.mode"] = mode
    for command in ("shadow", "suggest"):
        assert "broker 0 has no authorizer" in run("acl", command, code=1).stderr


def test_a_broker_that_does_not_answer_is_named(run: Run, script: Remembering) -> None:
    script.name_beside_itself(4, own_port())
    script.remember("used", ALICE, "READ", "t")
    for command in ("shadow", "suggest"):
        told = run("acl", command, code=1).stderr
        assert "broker 4 does not answer: its clients are not in the list" in told


# --- suggest --------------------------------------------------------------------------------------------


def test_the_least_rules_as_commands_that_work(run: Run, script: Remembering) -> None:
    script.remember("denied", ALICE, "WRITE", "t")
    script.remember("denied", ALICE, "DESCRIBE", "t")
    script.remember("denied", ALICE, "WRITE", "*")
    script.remember("used", ALICE, "READ", "there")
    script.remember("denied", BOB, "READ", "t")
    script.rules = {rule(Operation.READ, name="there"), rule(Operation.READ, name="never")}
    lines = run("acl", "suggest", "alice").stdout.splitlines()
    assert lines == [
        "headrace acl add --allow-principal User:alice --operation write --topic t",
        "# nobody used: headrace acl remove --allow-principal User:alice --operation read --topic never",
    ]
    for line in lines:
        run(*shlex.split(line.removeprefix("# nobody used: "))[1:])
    again = run("acl", "suggest", "alice")
    assert again.stdout == ""
    assert "every rule that is needed is there" in again.stderr


def test_json_is_what_apply_takes(run: Run, script: Remembering) -> None:
    for name in ("logs.a", "logs.b"):
        script.remember("denied", ALICE, "READ", name)
    script.remember("denied", BOB, "WRITE", "*")
    script.rules = {rule(Operation.READ, BOB, "never")}
    told = run("acl", "suggest", "--merge-from", "2", "-o", "json")
    assert "# nobody used" in told.stderr
    run("acl", "apply", "-", "--prune", stdin=told.stdout)
    assert {(each.principal, each.operation.name, each.pattern.name, each.name) for each in script.rules} == {
        (ALICE, "READ", "PREFIXED", "logs."),
        (BOB, "IDEMPOTENT_WRITE", "LITERAL", "kafka-cluster"),
    }


def test_what_was_refused_was_not_done(run: Run, script: Remembering) -> None:
    script.configs["headrace.access.mode"] = "enforce"
    script.remember("denied", ALICE, "WRITE", "t")
    told = run("acl", "suggest", "alice")
    assert told.stdout == ""
    assert "no broker has seen User:alice do anything" in told.stderr


def test_rights_of_an_administrator_are_named_and_left_out(run: Run, script: Remembering) -> None:
    script.remember("denied", ALICE, "ALTER", "kafka-cluster", "CLUSTER")
    script.remember("denied", ALICE, "CREATE_TOKENS", "User:root", "USER")
    script.remember("denied", ALICE, "WRITE", "__consumer_offsets")
    script.remember("denied", ALICE, "READ", "t")
    lines = run("acl", "suggest", "alice").stdout.splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "headrace acl add --allow-principal User:alice --operation read --topic t"
    ]
    assert sum(line.startswith("# left out, for it gives ") for line in lines) == 3
    as_json = run("acl", "suggest", "alice", "-o", "json")
    assert [each["name"] for each in json.loads(as_json.stdout)] == ["t"]
    assert as_json.stderr.count("# left out") == 3


def test_a_name_of_a_client_adds_no_line_and_no_command(run: Run, script: Remembering) -> None:
    name = "g'\nheadrace acl add --cluster #\x1b[2J"
    script.remember("denied", ALICE, "READ", name, "GROUP")
    script.remember("denied", ALICE, "READ", "", "GROUP")
    (line,) = run("acl", "suggest", "alice").stdout.splitlines()
    typed = subprocess.run(["bash", "-c", f"printf %s {line.split(' --group ')[1]}"], capture_output=True)
    assert typed.stdout.decode() == name
    assert json.loads(run("acl", "suggest", "alice", "-o", "json").stdout)[0]["name"] == name
    shown = run("acl", "shadow", code=1).stdout
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 3
