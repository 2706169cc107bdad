"""A cluster of Apache Kafka, each process broker and controller: the oracle for the harness itself."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import uuid
from pathlib import Path

from tests.apache_kafka import CLUSTER_ID, SERVER_VERSION, jars, java_command
from tests.broker_process import BrokerProcess, Place, write_properties
from tests.cluster_process import ClusterProcess
from tests.ports import own_port

_STARTED = "Kafka Server started"


class ApacheKafkaNode(BrokerProcess):
    """One member. `voters` has every member's controller address."""

    START_SECONDS = 240.0

    def __init__(self, cluster: ApacheKafkaCluster, broker_id: int, place: Place) -> None:
        super().__init__(
            cluster.directory / str(broker_id), cluster.properties, broker_id=broker_id, place=place
        )
        self.cluster = cluster

    def command(self) -> list[str]:
        config = self.directory / "server.properties"
        address = self.place.address
        controller = self.cluster.controller_ports[self.broker_id]
        write_properties(
            config,
            {
                "process.roles": "broker,controller",
                "node.id": str(self.broker_id),
                "controller.quorum.voters": self.cluster.voters(),
                "listeners": f"PLAINTEXT://{address}:{self.port},CONTROLLER://{address}:{controller}",
                "advertised.listeners": f"PLAINTEXT://{address}:{self.port}",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
                "log.dirs": str(self.log_dir),
                "offsets.topic.replication.factor": "3",
                "auto.create.topics.enable": "false",
                **self.properties,
            },
        )
        self.cluster.format(self, config)
        # What an earlier run has said would be taken for this one's words.
        self.output.unlink(missing_ok=True)
        java = java_command(jars(SERVER_VERSION), *self.cluster.further_jars, heap_mb=400, log_level="info")
        return [*java, "kafka.Kafka", str(config)]

    def answers(self) -> bool:
        return self.output.exists() and _STARTED in self.output.read_text(errors="replace")


class ApacheKafkaCluster(ClusterProcess):
    READY_SECONDS = 240.0
    #: Beside the server's own.
    further_jars: tuple[Path, ...] = ()

    def prepare(self) -> None:
        self.controller_ports = {
            number: 9093 if place.address != "127.0.0.1" else own_port()
            for number, place in enumerate(self.places, 1)
        }

    def voters(self) -> str:
        return ",".join(
            f"{number}@{place.address}:{self.controller_ports[number]}"
            for number, place in enumerate(self.places, 1)
        )

    def make(self, broker_id: int, place: Place) -> BrokerProcess:
        return ApacheKafkaNode(self, broker_id, place)

    def format(self, node: ApacheKafkaNode, config: Path) -> None:
        """Kafka's tool makes the first directory. It takes seconds, so the others are copies of it."""
        if (node.log_dir / "meta.properties").exists():
            return
        made = [one.log_dir for one in self.brokers.values() if (one.log_dir / "meta.properties").exists()]
        if not made:
            java = java_command(jars(SERVER_VERSION))
            tool = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config)]
            subprocess.run(tool, check=True, capture_output=True, timeout=240)
            return
        node.log_dir.mkdir(parents=True)
        for path in made[0].iterdir():
            if path.is_file() and path.name in ("meta.properties", "bootstrap.checkpoint"):
                shutil.copy(path, node.log_dir)
        meta = node.log_dir / "meta.properties"
        directory_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        text = re.sub(r"node\.id=\d+", f"node.id={node.broker_id}", meta.read_text())
        meta.write_text(re.sub(r"directory\.id=.*", f"directory.id=A{directory_id[1:]}", text))
