"""Kafka's own Java load tool, for the case that is about the Java client's default batch."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

from bench import apache_kafka
from bench.load_generator import LIMIT_S, LoadFailed

RATE = re.compile(r"([\d.]+) records/sec")


def producer_performance(
    bootstrap: str, topic: str, *, records: int, size: int, properties: Mapping[str, str]
) -> float:
    """Run ProducerPerformance flat out; return the records a second that it reports."""
    command = apache_kafka.tool_command(
        apache_kafka.find_jars(),
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", str(records), "--record-size", str(size)),
        *("--throughput", "-1", "--bootstrap-server", bootstrap, "--command-property"),
        *(f"{name}={value}" for name, value in properties.items()),
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    rates = RATE.findall(done.stdout)
    if done.returncode or not rates:
        raise LoadFailed(f"ProducerPerformance ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return float(rates[-1])
