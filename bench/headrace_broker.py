"""Headrace as a process: the installed command, with Kafka's property names."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from bench import interpreter
from bench.broker import Broker
from bench.cluster import BROKERS, Cluster
from bench.interpreter import Build
from bench.protection import Protection, listeners
from headrace.testing.zookeeper import ZooKeeper


@dataclass(frozen=True)
class Headrace:
    """The `headrace` command beside this Python, or the one that HEADRACE_COMMAND names."""

    name: str = "Headrace"
    command: Path = Path(os.environ.get("HEADRACE_COMMAND", Path(sys.executable).parent / "headrace"))
    broker_id: int = 1
    zookeeper: str = ""
    protection: Protection | None = None

    def python(self) -> Build | None:
        """The build that runs the command, by which its costs differ."""
        return interpreter.examine(self.command.parent / "python")

    def install(self, directory: Path, port: int, secure_port: int) -> list[str]:
        properties = {
            "broker.id": str(self.broker_id),
            "listeners": listeners(port, secure_port),
            "advertised.listeners": listeners(port, secure_port),
            "log.dirs": str(directory / "logs"),
            "auto.create.topics.enable": "false",
        }
        if self.protection is not None:
            properties |= self.protection.broker_properties()
        if self.zookeeper:
            properties["zookeeper.connect"] = self.zookeeper
        config = directory / "server.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        return [str(self.command), "broker", "--config", str(config)]

    def cluster(self, directory: Path) -> Cluster:
        """Three brokers and one ZooKeeper, which is a process of its own and is counted by itself."""
        zookeeper = ZooKeeper(directory / "zookeeper", tick_ms=2000).start()
        members = [
            Headrace(self.name, self.command, number, zookeeper.connect, self.protection)
            for number in range(1, BROKERS + 1)
        ]
        brokers = [Broker(member, directory / str(member.broker_id)) for member in members]
        return Cluster(brokers, _ZooKeeper(zookeeper))


@dataclass(frozen=True)
class _ZooKeeper:
    servers: ZooKeeper

    @property
    def pids(self) -> list[int]:
        return [node.pid for node in self.servers.nodes]

    def stop(self) -> None:
        self.servers.stop()
