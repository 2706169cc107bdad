"""The commands for rules, against a scripted broker that keeps them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given

from headrace.cli.acl import add
from headrace.cli.acl_grant import without_shared
from headrace.cli.acl_options import Entries, Resources, rules_given
from headrace.client.acl_commands import command_of
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_acls_request import CreateAclsRequest
from headrace.protocol.messages.delete_acls_request import DeleteAclsRequest
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType, operations_of
from headrace.security.acl_document import document_of, rule_of_entry
from tests.unit.cli.serving import Run, runner, serving
from tests.unit.client.scripted_security import ScriptedSecurity
from tests.unit.security.drawn_rules import RULES


def rule(
    operation: Operation,
    name: str = "t",
    *,
    principal: str = "User:alice",
    resource_type: ResourceType = ResourceType.TOPIC,
    pattern: PatternType = PatternType.LITERAL,
    permission: Permission = Permission.ALLOW,
    host: str = "*",
) -> AclRule:
    return AclRule(resource_type, name, pattern, principal, host, operation, permission)


READ, WRITE, DESCRIBE = rule(Operation.READ), rule(Operation.WRITE), rule(Operation.DESCRIBE)


@pytest.fixture
def script() -> Iterator[ScriptedSecurity]:
    broker = ScriptedSecurity()
    with serving(broker):
        yield broker


@pytest.fixture
def run(script: ScriptedSecurity) -> Run:
    return runner(script.address)


# --- grant and revoke -----------------------------------------------------------------------------------


def test_grant_gives_the_whole_set(run: Run, script: ScriptedSecurity) -> None:
    result = run("acl", "grant", "alice", "produce", "t")
    assert script.rules == {WRITE, DESCRIBE}
    assert result.stdout.splitlines() == [
        "+ ALLOW User:alice WRITE on TOPIC LITERAL:t from *",
        "+ ALLOW User:alice DESCRIBE on TOPIC LITERAL:t from *",
    ]
    again = run("acl", "grant", "alice", "produce", "t")
    assert "nothing to change" in again.stderr
    assert len(script.seen(CreateAclsRequest)) == 1


def test_a_plan_changes_nothing(run: Run, script: ScriptedSecurity) -> None:
    script.rules = {DESCRIBE}
    result = run("acl", "grant", "alice", "consume", "t", "--group", "g", "--prefix", "--plan", "-o", "json")
    planned = json.loads(result.stdout)
    assert planned["done"] is False
    assert {(each["resource_type"], each["name"], each["pattern"]) for each in planned["add"]} == {
        ("TOPIC", "t", "PREFIXED"),
        ("GROUP", "g", "PREFIXED"),
    }
    assert run("acl", "revoke", "alice", "produce", "t", "--plan").stdout.startswith(
        "- ALLOW User:alice DESC"
    )
    assert script.rules == {DESCRIBE}


def test_consume_without_a_group_is_told_what_it_lacks(run: Run) -> None:
    assert "need --group" in run("acl", "grant", "alice", "consume", "t").stderr
    assert "need --group" not in run("acl", "grant", "alice", "consume", "t", "--group", "g").stderr


def test_admin_is_for_everything(run: Run, script: ScriptedSecurity) -> None:
    run("acl", "grant", "User:CN=ops", "admin")
    assert {(each.principal, each.operation, each.resource_type) for each in script.rules} == {
        ("User:CN=ops", Operation.ALL, kind)
        for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)
    }
    run("acl", "revoke", "User:CN=ops", "admin")
    assert script.rules == set()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("alice", "produce"), "produce needs a topic"),
        (("alice", "admin", "t"), "takes no names"),
        (("alice", "produce", "t", "--group", "g"), "produce needs no group"),
        (("alice", "dance", "t"), "'dance' is not one of"),
    ],
)
def test_what_cannot_be_granted_is_a_sentence(run: Run, words: tuple[str, ...], text: str) -> None:
    assert text in run("acl", "grant", *words, code=2).stderr


def test_revoke_leaves_what_another_grant_needs(run: Run, script: ScriptedSecurity) -> None:
    run("acl", "grant", "alice", "produce", "t")
    run("acl", "grant", "alice", "consume", "t")
    run("acl", "grant", "bob", "produce", "t")
    run("acl", "revoke", "alice", "produce", "t")
    assert {each for each in script.rules if each.principal == "User:alice"} == {READ, DESCRIBE}
    run("acl", "revoke", "alice", "consume", "t")
    assert {each.principal for each in script.rules} == {"User:bob"}


def test_a_shared_describe_goes_with_the_last_that_needs_it() -> None:
    assert without_shared([WRITE, DESCRIBE], [READ, WRITE, DESCRIBE]) == [WRITE]
    assert without_shared([WRITE, DESCRIBE], [WRITE, DESCRIBE]) == [WRITE, DESCRIBE]
    elsewhere = READ._replace(name="u")
    assert without_shared([WRITE, DESCRIBE], [WRITE, DESCRIBE, elsewhere]) == [WRITE, DESCRIBE]


# --- rules one by one -----------------------------------------------------------------------------------


def test_add_makes_every_combination(run: Run, script: ScriptedSecurity) -> None:
    run(
        *(
            "acl",
            "add",
            "--allow-principal",
            "alice",
            "--deny-principal",
            "User:eve",
            "--deny-host",
            "10.0.0.7",
        ),
        *("--operation", "read", "--operation", "DescribeConfigs", "--topic", "a", "--topic", "b"),
    )
    assert script.rules == {
        made
        for name in ("a", "b")
        for operation in (Operation.READ, Operation.DESCRIBE_CONFIGS)
        for made in (
            rule(operation, name),
            rule(operation, name, principal="User:eve", permission=Permission.DENY, host="10.0.0.7"),
        )
    }


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--allow-principal", "a"), "say what the rule is about"),
        (("--topic", "t"), "say whom the rule is for"),
        (("--allow-principal", "a", "--group", "g", "--operation", "write"), "has no operation WRITE"),
        (("--allow-principal", "a", "--topic", "t", "--operation", "rade"), "is not an operation"),
    ],
)
def test_add_refuses_what_cannot_be(run: Run, words: tuple[str, ...], text: str) -> None:
    assert text in run("acl", "add", *words, code=2).stderr


def test_remove_is_the_reverse_of_add(run: Run, script: ScriptedSecurity) -> None:
    script.rules = {READ, WRITE, rule(Operation.READ, "t", pattern=PatternType.PREFIXED)}
    run("acl", "remove", "--allow-principal", "alice", "--operation", "read", "--topic", "t")
    assert script.rules == {WRITE, rule(Operation.READ, "t", pattern=PatternType.PREFIXED)}


def test_remove_without_principals_clears_the_resource(run: Run, script: ScriptedSecurity) -> None:
    other = rule(Operation.READ, "u")
    script.rules = {READ, rule(Operation.READ, principal="User:bob"), other}
    run("acl", "remove", "--topic", "t")
    assert script.rules == {other}


def test_remove_of_a_principal_finds_all_patterns(run: Run, script: ScriptedSecurity) -> None:
    bob = rule(Operation.READ, principal="User:bob")
    script.rules = {READ, rule(Operation.WRITE, "p", pattern=PatternType.PREFIXED), bob}
    run("acl", "remove", "--principal", "alice")
    assert script.rules == {bob}


@pytest.mark.parametrize(
    "words",
    [(), ("--operation", "read"), ("--principal", "a", "--allow-principal", "a", "--topic", "t")],
)
def test_remove_never_takes_more_than_was_named(
    run: Run, script: ScriptedSecurity, words: tuple[str, ...]
) -> None:
    script.rules = {READ}
    run("acl", "remove", *words, code=2)
    assert script.rules == {READ}
    assert script.seen(DeleteAclsRequest) == []


def test_list_filters(run: Run, script: ScriptedSecurity) -> None:
    assert "no rules like that" in run("acl", "list").stderr
    prefixed = rule(Operation.READ, "or", principal="User:bob", pattern=PatternType.PREFIXED)
    script.rules = {READ, prefixed}
    head, alice, bob = (line.split() for line in run("acl", "list").stdout.splitlines())
    assert head == ["PRINCIPAL", "PERMISSION", "OPERATION", "RESOURCE", "PATTERN", "HOST"]
    assert alice == ["User:alice", "ALLOW", "READ", "topic", "t", "LITERAL", "*"]
    assert bob == ["User:bob", "ALLOW", "READ", "topic", "or", "PREFIXED", "*"]
    assert "bob" not in run("acl", "list", "--principal", "alice").stdout
    assert run("acl", "list", "--topic", "orders").stdout == ""
    found = run("acl", "list", "--topic", "orders", "--resource-pattern-type", "match", "-o", "json").stdout
    assert json.loads(found) == [document_of(prefixed)]


def test_without_an_authorizer_the_cure_is_named(run: Run, script: ScriptedSecurity) -> None:
    script.denied = ErrorCode.SECURITY_DISABLED
    result = run("acl", "list", code=1)
    assert "no authorizer" in result.stderr
    assert "hint: set authorizer.class.name" in result.stderr


# --- explain and lint -----------------------------------------------------------------------------------


def test_explain_names_the_smallest_cure_and_the_cure_works(run: Run, script: ScriptedSecurity) -> None:
    denial = rule(Operation.READ, "t", principal="User:*", permission=Permission.DENY)
    script.rules = {WRITE, denial}
    lines = run("acl", "explain", "alice", "consume", "t", code=1).stdout.splitlines()
    assert lines[0] == "no: User:alice may not READ topic t"
    assert lines[1] == f"because of the rule: {denial}"
    assert lines[2] == "the smallest cure:"
    for line in lines[3:]:
        program, *words = shlex.split(line)
        assert program == "headrace"
        run(*words)
    assert script.rules == {WRITE, READ}
    allowed = run("acl", "explain", "alice", "read", "topic:t").stdout.splitlines()
    assert allowed == ["yes: User:alice may READ topic t", f"because of the rule: {READ}"]


def test_explain_knows_super_users_and_the_default(run: Run, script: ScriptedSecurity) -> None:
    assert "super user" in run("acl", "explain", "CN=admin", "alter", "cluster").stdout
    denied = run("acl", "explain", "alice", "read", "group:g", code=1).stdout
    assert "no rule is about the group g" in denied
    script.configs["allow.everyone.if.no.acl.found"] = "true"
    told = run("acl", "explain", "alice", "read", "group:g").stdout
    assert "allow.everyone.if.no.acl.found is set" in told


def test_explain_counts_rules_for_an_address_only_with_it(run: Run, script: ScriptedSecurity) -> None:
    script.rules = {rule(Operation.READ, host="0:0:0:0:0:0:0:1")}
    assert "none of them is for this" in run("acl", "explain", "alice", "read", "t", code=1).stdout
    result = run("acl", "explain", "alice", "read", "t", "--host", "::1", "-o", "json")
    assert json.loads(result.stdout)["allowed"] is True
    assert "not an IP address" in run("acl", "explain", "alice", "read", "t", "--host", "b1", code=1).stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("read", "t"), "READ topic t"),
        (("READ", "TOPIC", "t"), "READ topic t"),
        (("WRITE", "TRANSACTIONAL_ID", "x"), "WRITE transactional-id x"),
        (("write", "txn:x"), "WRITE transactional-id x"),
        (("CLUSTER_ACTION", "CLUSTER", "kafka-cluster"), "CLUSTER_ACTION cluster"),
        (("create", "cluster"), "CREATE cluster"),
        (("create-tokens", "user:bob"), "CREATE_TOKENS user User:bob"),
        (("read", "topic:group:x"), "READ topic group:x"),
    ],
)
def test_resources_are_written_as_people_and_as_logs_write_them(
    run: Run, words: tuple[str, ...], told: str
) -> None:
    lines = run("acl", "explain", "alice", *words, code=1).stdout.splitlines()
    assert lines[0] == f"no: User:alice may not {told}"


@pytest.mark.parametrize("resource", ["queue:x", "topic:", "group:"])
def test_what_is_no_resource_is_refused(run: Run, resource: str) -> None:
    assert "is not a resource" in run("acl", "explain", "alice", "read", resource, code=2).stderr


def test_lint_is_an_exit_code(run: Run, script: ScriptedSecurity) -> None:
    run("acl", "grant", "alice", "consume", "t", "--group", "g")
    assert "nothing to say about 4 rules" in run("acl", "lint").stderr
    script.rules = {READ, rule(Operation.ALL), rule(Operation.READ, "u", host="10.0.0.0/8")}
    told = json.loads(run("acl", "lint", "--json", code=1).stdout)
    assert {each["problem"] for each in told} == {"covered by another rule", "dead host"}


# --- files ----------------------------------------------------------------------------------------------


def test_what_list_prints_is_what_apply_takes(run: Run, script: ScriptedSecurity, tmp_path: Path) -> None:
    script.rules = {READ, rule(Operation.ALL, "x-", pattern=PatternType.PREFIXED, permission=Permission.DENY)}
    before = set(script.rules)
    file = tmp_path / "rules.json"
    file.write_text(run("acl", "list", "-o", "json").stdout)
    script.rules = {WRITE}
    assert run("acl", "apply", str(file), "--prune", "--plan").stdout.count("\n") == 3
    assert script.rules == {WRITE}
    run("acl", "apply", str(file))
    assert script.rules == before | {WRITE}
    run("acl", "apply", str(file), "--prune")
    assert script.rules == before


def test_apply_takes_grants(run: Run, script: ScriptedSecurity) -> None:
    document = [
        {"principal": "alice", "grant": "produce", "topic": "t"},
        {"principal": "alice", "operation": "read", "resource_type": "topic", "name": "t"},
    ]
    run("acl", "apply", "-", stdin=json.dumps(document))
    assert script.rules == {READ, WRITE, DESCRIBE}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not JSON"),
        ("{}", "is not a list"),
        ("[3]", "entry 1: this is neither a rule nor a grant"),
        ('[{"principal": "a", "grant": "dance"}]', "is one of produce, consume, admin"),
        ('[{"principal": "a", "grant": "produce"}]', "entry 1: produce needs a topic"),
        ('[{"principal": "a", "grant": "produce", "topics": "t"}]', "'topics' is not a field of a grant"),
        ('[{"principal": "a", "grant": "produce", "topic": 3}]', "every other field is a text"),
        ('[{"principal": "a", "operation": "READ", "name": "t"}]', "'resource_type' is missing"),
        (
            '[{"principal": "a", "operation": "READ", "resource_type": "TOPIC", "name": ""}]',
            "the resource name is empty",
        ),
        (
            '[{"principal": "a", "operation": "ANY", "resource_type": "TOPIC", "name": "t"}]',
            "'ANY' is not an operation",
        ),
    ],
)
def test_a_wrong_file_changes_nothing(run: Run, script: ScriptedSecurity, text: str, told: str) -> None:
    assert told in run("acl", "apply", "-", stdin=text, code=1).stderr
    assert script.seen(CreateAclsRequest) == []


# --- properties -----------------------------------------------------------------------------------------


@given(RULES)
def test_a_rule_survives_its_document(drawn: AclRule) -> None:
    assert rule_of_entry(document_of(drawn)) == drawn


@given(RULES)
def test_the_command_of_a_rule_says_the_rule(drawn: AclRule) -> None:
    assume(drawn.operation in (Operation.ALL, *operations_of(drawn.resource_type)))
    program, group, verb, *words = shlex.split(command_of("add", drawn))
    assert (program, group, verb) == ("headrace", "acl", "add")
    given_words = add.make_context("add", words).params
    resources = Resources(**{name: given_words[name] for name in Resources._fields})
    entries = Entries(**{name: given_words[name] for name in Entries._fields})
    assert rules_given(resources, entries, given_words["pattern"]) == [drawn]
