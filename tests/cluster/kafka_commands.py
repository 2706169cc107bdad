"""Kafka's command-line tools as an operator of a cluster types them."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.apache_kafka import KafkaTools, ToolResult, jars, java_command
from tests.cluster_process import ClusterProcess

_PACKAGE = "org.apache.kafka.tools"
_CLASSES = {
    "reassign": f"{_PACKAGE}.reassign.ReassignPartitionsCommand",
    "elect": f"{_PACKAGE}.LeaderElectionCommand",
    "cluster": f"{_PACKAGE}.ClusterTool",
}
_VERIFICATION = f"{_PACKAGE}.ReplicaVerificationTool"


class Commands:
    def __init__(self, tools: KafkaTools, cluster: ClusterProcess) -> None:
        self._tools = tools
        self._cluster = cluster

    def run(self, tool: str, *arguments: str) -> ToolResult:
        running = [b.bootstrap for n, b in self._cluster.brokers.items() if b.running]
        name = _CLASSES.get(tool, tool)
        # ClusterTool has commands of its own, and wants them first.
        first = arguments[:1] if tool == "cluster" else ()
        rest = arguments[len(first) :]
        return self._tools.run(name, *first, "--bootstrap-server", ",".join(running), *rest)

    def output(self, tool: str, *arguments: str) -> str:
        """What it printed; it must have succeeded."""
        result = self.run(tool, *arguments)
        assert result.status == 0, result.output + result.errors
        return result.output

    def listed(self, *filters: str) -> set[str]:
        """The partitions that TopicCommand lists, such as orders-0."""
        printed = self.output("topics", "--describe", *filters)
        rows = [line.split() for line in printed.splitlines() if "\tPartition:" in line]
        return {f"{row[1]}-{row[3]}" for row in rows}

    def log_dirs(self, *topics: str) -> dict[int, dict[str, Any]]:
        """For each broker: where each replica is, and how large it is."""
        printed = self.output("log-dirs", "--describe", "--topic-list", ",".join(topics))
        told = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
        return {
            broker["broker"]: {
                replica["partition"]: {**replica, "logDir": directory["logDir"]}
                for directory in broker["logDirs"]
                for replica in directory["partitions"]
            }
            for broker in told["brokers"]
        }


def write_plan(path: Path, moves: Mapping[tuple[str, int], Sequence[int]]) -> str:
    partitions = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in moves.items()
    ]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def verify_replicas(bootstrap: str, topic: str, seconds: float = 60) -> list[str]:
    """What ReplicaVerificationTool says until it has read something. It never ends by itself."""
    command = [*java_command(jars("4.3.1"), log_level="error"), _VERIFICATION, "--broker-list", bootstrap]
    command += ["--topics-include", topic, "--time", "-2", "--report-interval-ms", "500"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    watchdog = threading.Timer(seconds, process.kill)
    watchdog.start()
    said: list[str] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line.strip())
            if re.search(r"max lag is \d+ for partition", line):
                break
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    return said
