"""A backfill as a process that is killed and started again, and a judge of what came of it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.spark.driver_process import DriverProcess
from tests.spark.shared_classes import short_lived

PROGRAM = "tests.spark.lake.crashing_backfill"
TASK_BYTES = 9_000
_CONFIG = """
[kafka]
"bootstrap.servers" = "{bootstrap}"
[lake]
format = "{table_format}"
location = "file://{location}"
state = "file://{directory}/state"
namespace = "{namespace}"
[[topics]]
name = "{topic}"
[spark]
master = "local[2]"
"spark.ui.enabled" = "false"
"spark.driver.host" = "127.0.0.1"
"spark.driver.bindAddress" = "127.0.0.1"
"spark.databricks.delta.snapshotPartitions" = "2"
"spark.driver.extraJavaOptions" = "{java_options}"
"""


class KilledBackfill:
    def __init__(
        self,
        broker: BrokerProcess,
        topic: str,
        directory: Path,
        table_format: str,
        location: str,
        task_bytes: int = TASK_BYTES,
    ) -> None:
        self.topic = topic
        self.task_bytes = task_bytes
        self.directory = directory
        self.config = directory / "lake.toml"
        self.files = [str(broker.log_dir)]
        self.config.write_text(
            _CONFIG.format(
                bootstrap=broker.bootstrap,
                table_format=table_format,
                location=location,
                directory=directory,
                namespace=f"n{abs(hash(str(directory))):x}",
                topic=topic,
                java_options=short_lived(),
            )
        )

    @property
    def output(self) -> Path:
        return self.directory / "driver.out"

    @property
    def notes(self) -> Path:
        """What the backfill keeps of itself."""
        return self.directory / "state" / self.topic / "backfill"

    def start(self, crash: str = ":-1") -> DriverProcess:
        orders = {
            "config": str(self.config),
            "topic": self.topic,
            "files": self.files,
            "task_bytes": self.task_bytes,
            "crash": crash,
        }
        return DriverProcess(PROGRAM, json.dumps(orders), self.output)

    def expect_crash(self, crash: str) -> None:
        with self.start(crash) as driver:
            status = driver.wait(580)
        assert status == -signal.SIGKILL, f"{crash}: {self.output.read_text()[-5000:]}"

    def finish(self) -> None:
        with self.start() as driver:
            status = driver.wait(580)
        assert status == 0, self.output.read_text()[-5000:]
