"""What is told, counted and kept of denials, and how much of it at most."""

from __future__ import annotations

import shlex
from typing import Any

from headrace.broker.authorization.denials import AGAIN_AFTER_SECONDS, MOST_LINES, Denials, cure
from headrace.metrics.authorizer import AuthorizerMetrics
from headrace.metrics.authorizer_families import authorizer_families
from headrace.security.acl import Operation, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.acl_usage import Access
from headrace.security.rights import Authorizer
from tests.unit.security.drawn_rules import topic_rule

READ, TOPIC = Operation.READ, ResourceType.TOPIC


class World:
    """Its own log and its own clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.lines: list[dict[str, Any]] = []
        self.metrics = AuthorizerMetrics()
        log: Any = self
        self.denials = Denials(log, self.metrics, self)

    def warning(self, event: str, **fields: Any) -> None:
        self.lines.append({"event": event, **fields})

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return int(self.now * 1000)

    def deny(self, name: str = "orders", principal: str = "User:alice", operation: Operation = READ) -> None:
        self.denials.on_denial(principal, "10.0.0.1", operation, TOPIC, name)

    def shadow(self, name: str = "orders") -> None:
        self.denials.on_shadow_denial("User:alice", "10.0.0.1", READ, TOPIC, name)


def test_once_a_minute_for_each_principal_operation_and_resource() -> None:
    world = World()
    for _ in range(50):
        world.deny()
        world.now += 1
    assert len(world.lines) == 1
    world.deny(name="payments")
    world.deny(principal="User:bob")
    world.deny(operation=Operation.WRITE)
    assert len(world.lines) == 4
    assert world.lines[1]["untold"] == 49
    world.now = 1000.0 + AGAIN_AFTER_SECONDS - 0.1
    world.deny()
    assert len(world.lines) == 4
    world.now = 1000.0 + AGAIN_AFTER_SECONDS
    world.deny()
    assert len(world.lines) == 5
    assert world.lines[-1]["untold"] == 1


def test_the_line_says_who_what_and_how_to_find_out_why() -> None:
    world = World()
    world.deny()
    line = world.lines[0]
    assert line.pop("cure").startswith(
        "`headrace acl explain User:alice READ TOPIC orders --host 10.0.0.1` names the rule"
    )
    assert line == {
        "event": "authorization denied",
        "principal": "User:alice",
        "host": "10.0.0.1",
        "operation": "READ",
        "resource_type": "TOPIC",
        "resource": "orders",
        "untold": 0,
    }


def test_a_name_cannot_become_a_command() -> None:
    denial = Access("User:$(reboot)", READ, TOPIC, "a; rm -rf '/' `b`")
    command = cure(denial, "h").removeprefix("`").partition("` names")[0]
    words = shlex.split(command)
    assert words == [
        "headrace",
        "acl",
        "explain",
        *map(str, ("User:$(reboot)", "READ", "TOPIC", denial.name)),
        "--host",
        "h",
    ]


def test_names_without_end_cost_no_memory_and_few_lines() -> None:
    world = World()
    for number in range(5000):
        world.deny(name=f"t{number}")
        world.now += 0.001
    assert len(world.lines) == MOST_LINES == len(world.denials._told)
    world.now += AGAIN_AFTER_SECONDS
    world.deny(name="x" * 30_000)
    assert len(world.lines[-1]["resource"]) < 300
    assert len(world.lines[-1]["cure"]) < 600
    assert world.lines[-1]["untold"] == 5000 - MOST_LINES
    assert world.metrics.denied == {("READ", "TOPIC"): 5001}, "the counts are complete"


def test_denials_of_both_modes_are_remembered() -> None:
    world = World()
    for name in ("a", "b", "b"):
        world.shadow(name)
        world.now += 1
    world.deny("b")
    kept = {
        access.name: (seen.count, seen.first_ms, seen.last_ms, seen.last_host)
        for access, seen in world.denials.memory.denied
    }
    assert kept == {
        "a": (1, 1_000_000, 1_000_000, "10.0.0.1"),
        "b": (3, 1_001_000, 1_003_000, "10.0.0.1"),
    }
    assert len(world.denials.memory.used) == 0
    assert world.metrics.shadow_denied == {("READ", "TOPIC"): 3}
    assert world.metrics.denied == {("READ", "TOPIC"): 1}
    events = [line["event"] for line in world.lines]
    assert events == ["authorization denied in shadow mode"] * 2 + ["authorization denied"]


def test_an_authorizer_reports_to_it() -> None:
    world = World()
    authorizer = Authorizer(
        AclIndex([topic_rule("mine")]),
        on_denial=world.denials.on_denial,
        on_shadow_denial=world.denials.on_shadow_denial,
        on_use=world.denials.on_use,
    )
    rights = authorizer.rights_of("User:alice", "10.0.0.1")
    assert not rights.allows(READ, TOPIC, "orders")
    assert not rights.allows_silently(READ, TOPIC, "others")
    authorizer.set_mode("shadow")
    assert rights.allows(READ, TOPIC, "orders")
    assert world.metrics.denied == world.metrics.shadow_denied == {("READ", "TOPIC"): 1}
    assert rights.allows(READ, TOPIC, "mine")
    assert [access for access, _ in world.denials.memory.used] == [Access("User:alice", READ, TOPIC, "mine")]
    assert [access.name for access, _ in world.denials.memory.denied] == ["orders"]


def test_the_counts_are_exported() -> None:
    world = World()
    world.deny()
    world.shadow()
    world.shadow()
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in authorizer_families(world.metrics)
        for sample in family.samples
    }
    assert samples == {
        ("headrace_authorizer_denied_total", "READ", "TOPIC"): 1,
        ("headrace_authorizer_shadow_denied_total", "READ", "TOPIC"): 2,
    }
