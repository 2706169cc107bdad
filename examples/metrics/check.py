"""Do all agree? Each host's own count, the lines in the log, the rollups, and the query of one host."""

from __future__ import annotations

from dataclasses import dataclass, field

from confluent_kafka.admin import AdminClient, ConfigResource
from hosts import Shipped
from logs import LINES, MINUTE_MS, SETTINGS, Line, read, whole
from query import lines_of
from rollups import Rollup, read_rollups


@dataclass
class Verdict:
    shipped: int
    in_log: int
    in_rollups: int
    minutes: int
    differences: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.differences and self.shipped == self.in_log == self.in_rollups


def check(bootstrap: str, shipped: list[Shipped]) -> Verdict:
    """The log is added up again here, minute by minute, by another way than the rollups'."""
    again: dict[str, Rollup] = {}
    numbers: dict[str, list[int]] = {}
    for message in read(bootstrap, whole(LINES)):
        host, minute, line = (
            message.key().decode(),
            message.timestamp()[1] // MINUTE_MS,
            Line.decode(message.value()),
        )
        again.setdefault(f"{host} {minute}", Rollup(host, minute)).add(line)
        numbers.setdefault(host, []).append(line.number)
    rollups = read_rollups(bootstrap)
    verdict = Verdict(
        shipped=sum(host.lines for host in shipped),
        in_log=sum(len(found) for found in numbers.values()),
        in_rollups=sum(rollup.lines for rollup in rollups.values()),
        minutes=len(rollups),
    )
    for key in again.keys() | rollups.keys():
        if again.get(key) != rollups.get(key):
            verdict.differences.append(f"{key}: the log has {again.get(key)}, the topic {rollups.get(key)}")
    for host in shipped:
        if numbers.get(host.host) != list(range(host.lines)):
            verdict.differences.append(f"{host.host}: lines are missing, doubled or out of order")
        if host.errors != sum(rollup.errors for rollup in rollups.values() if rollup.host == host.host):
            verdict.differences.append(
                f"{host.host}: the host counted {host.errors} errors, the rollups others"
            )
    last = shipped[-1]
    if [line.number for _, line in lines_of(bootstrap, last.host)] != list(range(last.lines)):
        verdict.differences.append(f"the query of {last.host} does not give its lines")
    verdict.differences += unset(bootstrap)
    return verdict


def unset(bootstrap: str) -> list[str]:
    """Settings that the brokers do not have as they were asked for."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = []
    for topic, wanted in SETTINGS.items():
        [answer] = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
        settings = answer.result(30)
        found += [
            f"{topic}: {name} is {settings[name].value}"
            for name in wanted
            if settings[name].value != wanted[name]
        ]
    return found
