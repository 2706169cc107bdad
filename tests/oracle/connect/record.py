"""Asks Apache Kafka's Connect and writes down what it answers: python -m tests.oracle.connect.record"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.apache_connect import ConnectWorker
from tests.apache_kafka import ApacheKafka
from tests.oracle.connect.scripts import record, talk


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        properties = {"group.initial.rebalance.delay.ms": "0"}
        with (
            ApacheKafka(directory / "kafka", properties) as kafka,
            ConnectWorker(directory / "worker", kafka.bootstrap) as worker,
        ):
            answers = talk(worker.port, directory / "files")
    record(answers)


if __name__ == "__main__":
    main()
