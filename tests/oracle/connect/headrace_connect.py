"""`headrace connect` as a process: one worker with a Spark session."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Self

from headrace.spark import jars
from tests.apache_connect import call
from tests.apache_kafka import CACHE
from tests.broker_process import HEADRACE, BrokerProcess, Place


class HeadraceConnect(BrokerProcess):
    def __init__(self, directory: Path, bootstrap: str) -> None:
        brought = {jars.DIRECTORY_VARIABLE: str(CACHE / "spark-jars")}
        super().__init__(directory, place=Place(environment=brought))
        self.brokers = bootstrap

    def command(self) -> list[str]:
        listen = ["--listen", f"127.0.0.1:{self.port}", "--session-timeout-ms", "30000"]
        return [str(HEADRACE), "connect", "--bootstrap", self.brokers, "--master", "local[1]", *listen]

    def wait_ready(self) -> Self:
        """The port is open before the worker knows what there is to do."""
        super().wait_ready()
        deadline = time.monotonic() + self.START_SECONDS
        while call(self.port, "GET", "/health").status != 200:
            assert time.monotonic() < deadline, f"the worker does not get ready:\n{self.tail()}"
            time.sleep(0.1)
        return self
