"""What the brokers remember of accesses: who used which right, who was denied which. Of all brokers together.

Each broker knows only of its own clients, and each only since its start. So whoever wants the truth about a
cluster asks every broker, and says which of them did not answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.client.broker_reports import ask_all
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.config.security_report import ACCESS, DENIED, MODE, OVERFLOW, SINCE_MS, USED
from headrace.security.acl import Operation, ResourceType
from headrace.security.acl_usage import Access


class Seen(NamedTuple):
    access: Access
    host: str
    """The last one."""
    times: int
    last_ms: int


class BrokerAccess(NamedTuple):
    broker_id: int
    mode: str
    """enforce, shadow or none, which is no authorizer; empty if it does not say."""
    since_ms: int
    overflow: int
    used: list[Seen]
    denied: list[Seen]


class ClusterAccess(NamedTuple):
    brokers: list[BrokerAccess]
    silent: list[int]
    """Brokers that did not answer."""

    @property
    def used(self) -> list[Seen]:
        return _merged(each for broker in self.brokers for each in broker.used)

    @property
    def denied(self) -> list[Seen]:
        return _merged(each for broker in self.brokers for each in broker.denied)

    @property
    def done(self) -> list[Access]:
        """What clients really did: by the rules, or against them on a broker in shadow mode."""
        found = [each.access for broker in self.brokers for each in broker.used]
        found += [each.access for broker in self.brokers if broker.mode == "shadow" for each in broker.denied]
        return sorted(set(found))


async def cluster_access(cluster: Cluster) -> ClusterAccess:
    broker_ids = sorted(node.node_id for node in (await cluster.metadata([])).brokers)
    answers = await ask_all(cluster, broker_ids, ACCESS)
    return ClusterAccess(
        [_of_broker(number, told.figures) for number, told in answers.items() if told is not None],
        [number for number, told in answers.items() if told is None],
    )


def _of_broker(broker_id: int, told: Mapping[str, str]) -> BrokerAccess:
    return BrokerAccess(
        broker_id,
        told.get(MODE, ""),
        _number(told, SINCE_MS),
        _number(told, OVERFLOW),
        [_seen(value) for name, value in told.items() if name.startswith(USED)],
        [_seen(value) for name, value in told.items() if name.startswith(DENIED)],
    )


def _number(told: Mapping[str, str], name: str) -> int:
    text = told.get(name, "")
    return int(text) if text.isdecimal() else 0


def _seen(value: str) -> Seen:
    try:
        principal, operation, resource_type, name, host, count, _first_ms, last_ms = json.loads(value)
        access = Access(principal, Operation[operation], ResourceType[resource_type], name)
        return Seen(access, host, int(count), int(last_ms))
    except (ValueError, KeyError, TypeError):
        raise ClientFailure(f"a broker remembers what this command does not know: {value}") from None


def _merged(seen: Iterable[Seen]) -> list[Seen]:
    """One for each access, whichever brokers saw it."""
    found: dict[Access, Seen] = {}
    for each in seen:
        known = found.get(each.access)
        if known is None:
            found[each.access] = each
        else:
            last = max(known, each, key=lambda one: one.last_ms)
            found[each.access] = last._replace(times=known.times + each.times)
    return list(found.values())
