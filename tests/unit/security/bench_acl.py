"""How long decisions take with 10,000 rules of one principal: `python -m tests.unit.security.bench_acl`."""

from __future__ import annotations

from time import perf_counter

from headrace.security.acl import Operation, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.rights import Authorizer
from tests.unit.security.drawn_rules import topic_rule

RULES = 10_000
ROUNDS = 7


def index_of_many_rules(lengths: int) -> AclIndex:
    """Half of the rules are prefixes, of that many lengths."""
    index = AclIndex()
    for number in range(RULES):
        name = f"team{number:05}." + "x" * (number // 2 % lengths)
        index.add(topic_rule(name, prefixed=number % 2 == 0))
    return index


def cold_mask_us(lengths: int) -> float:
    """Of names that fall under one prefix, and are so long that every length is probed."""
    index = index_of_many_rules(lengths)
    names = [f"team{number:05}." + "x" * (lengths + 10) for number in range(0, RULES, 5)]
    best = 1e9
    for _ in range(ROUNDS):
        begun = perf_counter()
        for name in names:
            index.mask("User:alice", "10.0.0.1", ResourceType.TOPIC, name)
        best = min(best, (perf_counter() - begun) / len(names))
    return best * 1e6


def cached_check_us() -> float:
    rights = Authorizer(index_of_many_rules(20)).rights_of("User:alice", "10.0.0.1")
    read, topic, name = Operation.READ, ResourceType.TOPIC, "team00000."
    assert rights.allows(read, topic, name)
    best = 1e9
    for _ in range(ROUNDS):
        begun = perf_counter()
        for _ in range(100_000):
            rights.allows(read, topic, name)
        best = min(best, (perf_counter() - begun) / 100_000)
    return best * 1e6


if __name__ == "__main__":
    for lengths in (20, 100, 200):
        print(f"cold mask, {RULES} rules, prefixes of {lengths} lengths: {cold_mask_us(lengths):.1f} us")
    print(f"cached check: {cached_check_us():.2f} us")
