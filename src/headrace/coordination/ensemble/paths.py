"""Where things are in ZooKeeper, below the chroot: at the paths that Kafka used, where it had one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.core.ids import BrokerId

_DIGITS: Final = 20
"""Enough for any offset, so that names sort as their numbers do."""


class Paths:
    def __init__(self, chroot: str) -> None:
        """`chroot` is empty, or begins with a slash and does not end with one."""
        self.chroot = chroot
        self.cluster_id = chroot + "/cluster/id"
        self.members = chroot + "/brokers/ids"
        self.versions = chroot + "/brokers/versions"
        self.epoch_base = chroot + "/brokers/epoch_base"
        self.controller = chroot + "/controller"
        self.controller_epoch = chroot + "/controller_epoch"
        self.log = chroot + "/metadata/log"
        self.snapshot = chroot + "/metadata/snapshot"
        self.restoring = chroot + "/metadata/restoring"
        self.kafka_topics = chroot + "/brokers/topics"
        """Made by Apache Kafka, and never by Headrace."""

    def member(self, broker_id: BrokerId) -> str:
        return f"{self.members}/{broker_id}"

    def versions_of(self, broker_id: BrokerId) -> str:
        return f"{self.versions}/{broker_id}"

    def batch(self, sequence: int) -> str:
        return f"{self.log}/{sequence:0{_DIGITS}d}"

    def lasting(self) -> Iterator[str]:
        """The nodes that everything else is made below, parents first."""
        yield from _above(self.chroot)
        for name in (
            "/cluster",
            "/brokers",
            "/brokers/ids",
            "/brokers/versions",
            "/metadata",
            "/metadata/log",
            "/metadata/snapshot",
        ):
            yield self.chroot + name

    def roots(self) -> tuple[str, ...]:
        """Every node of a cluster is one of these, or below one of them."""
        names = ("/cluster", "/brokers", "/controller", "/controller_epoch", "/metadata")
        return tuple(self.chroot + name for name in names)

    def of_cluster(self) -> tuple[str, ...]:
        """The nodes of a cluster, without those that come and go."""
        named = (self.cluster_id, self.controller_epoch, self.epoch_base)
        return (*(path for path in self.lasting() if path not in _above(self.chroot)), *named)


def _above(chroot: str) -> tuple[str, ...]:
    """The chroot and what is above it, where others may be at home."""
    parts = chroot.split("/")
    return tuple("/".join(parts[: depth + 1]) for depth in range(1, len(parts)))


def sequences_of(names: list[str]) -> list[int]:
    """The children of the log, in order. What has another name is none of its batches: nobody reads it, and
    a batch that is missed is found by the gap that it leaves."""
    return sorted(int(name) for name in names if len(name) == _DIGITS and name.isascii() and name.isdigit())
