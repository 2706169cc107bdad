"""Apache Kafka's own server and tools, started from the jars that Maven fetches.

The JVM flags are those that Kafka's start script gives its server. The settings are Kafka's defaults, except
for what one node needs (one copy of each internal topic) and for topics, which are never made by accident.
A cluster is three nodes that are broker and controller each.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench import wire
from bench.broker import Broker
from bench.cluster import BROKERS, Cluster
from bench.protection import Protection, listeners

VERSION = "4.3.1"
ROOT = Path(__file__).resolve().parent.parent
JARS_VARIABLE = "HEADRACE_KAFKA_JARS"
DEFAULT_JARS = ROOT / ".cache" / f"kafka-{VERSION}"
DESCRIPTOR = ROOT / "third_party_clients" / "kafka" / "pom.xml"
CLUSTER_ID = "aGVhZHJhY2UtYmVuY2gtMQ"

SERVER_FLAGS = [
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
]
TOOL_FLAGS = ["-Xmx512M", "-XX:+UseG1GC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]


def find_jars() -> Path:
    """The directory with Kafka's jars: named by the environment, or fetched into the cache once."""
    named = os.environ.get(JARS_VARIABLE)
    jars = Path(named) if named else DEFAULT_JARS
    if not any(jars.glob("kafka_*.jar")):
        print(f"fetching Apache Kafka {VERSION} into {jars}", flush=True)
        subprocess.run(
            [
                "mvn", "-q", "-B", "-f", str(DESCRIPTOR), f"-Dkafka.version={VERSION}",
                "dependency:copy-dependencies", f"-DoutputDirectory={jars}", "-DincludeScope=runtime",
            ],
            check=True,
        )  # fmt: skip
    return jars


def tool_command(jars: Path, main_class: str, *arguments: str) -> list[str]:
    return ["java", *TOOL_FLAGS, "-cp", f"{jars}/*", main_class, *arguments]


ALONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


@dataclass(frozen=True)
class ApacheKafka:
    """One node that is broker and controller, as Kafka's quick start has it; alone, or one of several."""

    jars: Path
    name: str = "Apache Kafka"
    node_id: int = 1
    controllers: tuple[int, ...] = ()
    """The controller ports of all nodes of a cluster, in the order of their ids."""
    protection: Protection | None = None

    def cluster(self, directory: Path) -> Cluster:
        controllers = tuple(wire.free_port() for _ in range(BROKERS))
        members = [
            ApacheKafka(self.jars, self.name, number, controllers, self.protection)
            for number in range(1, BROKERS + 1)
        ]
        return Cluster([Broker(member, directory / str(member.node_id)) for member in members])

    def install(self, directory: Path, port: int, secure_port: int) -> list[str]:
        config = directory / "server.properties"
        if not config.exists():
            self._format(config, directory, port, secure_port)
        return ["java", *SERVER_FLAGS, "-cp", f"{self.jars}/*", "kafka.Kafka", str(config)]

    def _format(self, config: Path, directory: Path, port: int, secure_port: int) -> None:
        ports = self.controllers or (wire.free_port(),)
        controller = ports[self.node_id - 1]
        voters = ",".join(f"{number}@127.0.0.1:{each}" for number, each in enumerate(ports, 1))
        properties = {
            "process.roles": "broker,controller",
            "node.id": str(self.node_id),
            "controller.quorum.voters": voters,
            "listeners": f"{listeners(port, secure_port)},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": listeners(port, secure_port),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
            "log.dirs": str(directory / "logs"),
            "auto.create.topics.enable": "false",
            **({} if self.controllers else ALONE),
            **({} if self.protection is None else self.protection.broker_properties()),
        }
        config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        command = tool_command(
            self.jars, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config)
        )
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            config.unlink()
            raise RuntimeError(f"formatting Kafka's directory failed:\n{done.stdout}{done.stderr}")
