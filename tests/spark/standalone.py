"""A real cluster of Spark: a master and some workers, each a process of its own, from PySpark's own files.

Everything is started on free ports and ended by its process id. An executor is a child of its worker.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyspark

from headrace.spark import jars
from tests.apache_kafka import CACHE
from tests.cluster_process import DIES_WITH_PARENT
from tests.ports import own_port
from tests.spark import processes
from tests.spark.shared_classes import short_lived

HOME: Final = Path(pyspark.__file__).parent
_CHECKOUT: Final = Path(__file__).parents[2]
_ADDRESS: Final = "127.0.0.1"
_START_SECONDS: Final = 180.0
_END_SECONDS: Final = 30.0
_EXECUTOR: Final = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


class Daemon:
    """One process of the cluster: a class of Spark's, its arguments, and how it says that it is up."""

    def __init__(self, name: str, directory: Path, arguments: list[str], ready: str) -> None:
        self.name = name
        self.output = directory / f"{name}.out"
        self._directory = directory
        self._arguments = arguments
        self._ready = ready
        self._heard_from = 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def launch(self) -> None:
        self._heard_from = self.output.stat().st_size if self.output.exists() else 0
        environment = {
            **os.environ,
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": _ADDRESS,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": short_lived(),
            "SPARK_LOCAL_DIRS": str(self._directory / "local"),
            "PYSPARK_PYTHON": sys.executable,
        }
        command = [*DIES_WITH_PARENT, str(HOME / "bin" / "spark-class"), *self._arguments]
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
            )

    def wait_ready(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + _START_SECONDS
        while self._ready not in self._said():
            if self.process.poll() is not None:
                raise RuntimeError(
                    f"{self.name} ended with {self.process.returncode}:\n{self._said()[-3000:]}"
                )
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} was not ready in time:\n{self._said()[-3000:]}")
            time.sleep(0.1)

    def _said(self) -> str:
        """Since its last start."""
        return self.output.read_bytes()[self._heard_from :].decode(errors="replace")

    def end(self, number: signal.Signals) -> None:
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(number)
            try:
                self.process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None


class Standalone:
    """`url` is what a session takes as its master."""

    def __init__(self, directory: Path, *, workers: int = 2, cores: int = 1, memory: str = "1g") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        port = own_port()
        self.url = f"spark://{_ADDRESS}:{port}"
        self.master = Daemon(
            "master",
            directory,
            [
                "org.apache.spark.deploy.master.Master",
                *("--host", _ADDRESS, "--port", str(port), "--webui-port", "0"),
            ],
            "New state: ALIVE",
        )
        self.workers = [self._worker(number, cores, memory) for number in range(1, workers + 1)]

    def _worker(self, number: int, cores: int, memory: str) -> Daemon:
        return Daemon(
            f"worker-{number}",
            self.directory,
            [
                "org.apache.spark.deploy.worker.Worker",
                *("--host", _ADDRESS, "--port", str(own_port()), "--webui-port", "0"),
                *("--cores", str(cores), "--memory", memory),
                *("--work-dir", str(self.directory / f"work-{number}"), self.url),
            ],
            "Successfully registered with master",
        )

    @property
    def daemons(self) -> list[Daemon]:
        return [self.master, *self.workers]

    def session_settings(self) -> dict[str, str]:
        """What a driver on this machine needs so that executors find it and the code of the tests."""
        return {
            "spark.driver.host": _ADDRESS,
            "spark.driver.bindAddress": _ADDRESS,
            "spark.driver.extraJavaOptions": short_lived(),
            "spark.executor.extraJavaOptions": short_lived(),
            "spark.executor.memory": "512m",
            # From where they lie: to send fifty megabytes to each new executor takes longer than the job.
            "spark.jars": ",".join(f"local:{path}" for path in jars.find(CACHE / "spark-jars")),
            "spark.executorEnv.PYTHONPATH": str(_CHECKOUT),
            "spark.executorEnv.SPARK_LOCAL_IP": _ADDRESS,
            "spark.sql.shuffle.partitions": "2",
            # Else Delta reads even the smallest log in fifty tasks.
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }

    def start(self) -> Self:
        try:
            for daemon in self.daemons:
                daemon.launch()
            for daemon in self.daemons:
                daemon.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def executors(self) -> list[int]:
        """The process ids of those that run now."""
        below = [
            pid for worker in self.workers if worker.running for pid in processes.descendants(worker.pid)
        ]
        return [pid for pid in below if processes.alive(pid) and _EXECUTOR in processes.command_line(pid)]

    def executor_logs(self) -> list[Path]:
        return sorted(self.directory.glob("work-*/*/*/std*"))

    def stop(self) -> None:
        """Workers end their executors; what does not end in time is killed."""
        below = [
            pid for worker in self.workers if worker.running for pid in processes.descendants(worker.pid)
        ]
        for daemon in reversed(self.daemons):
            daemon.end(signal.SIGTERM)
        if left := processes.wait_gone(below, _END_SECONDS):
            processes.kill(left)
            processes.wait_gone(left, _END_SECONDS)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
