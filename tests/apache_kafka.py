"""Apache Kafka itself: its broker, and its command-line tools kept in one JVM per version.

The jars come from Maven Central by way of `tests/setup_clients.sh`, into `.cache/` of the checkout.
"""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.broker_process import BROKER_ID, BrokerProcess, write_properties
from tests.ports import own_port

CHECKOUT = Path(__file__).parent.parent
CACHE = CHECKOUT / ".cache"
SERVER_VERSION = "4.3.1"
TOOL_VERSIONS = ("4.3.1", "3.9.1")
CLUSTER_ID = "aGVhZHJhY2UtY2x1c3Rlcg"

#: The classes behind Kafka's shell scripts; they have moved between releases.
TOOL_CLASSES = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "configs": "kafka.admin.ConfigCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
}
_EARLIER_CLASSES = {("3.9.1", "acls"): "kafka.admin.AclCommand"}
_STARTED = "Kafka Server started"


def class_path(*entries: Path) -> str:
    return ":".join(
        f"{entry}/*" if (entry / ".ok").exists() and any(entry.glob("*.jar")) else str(entry)
        for entry in entries
    )


def jars(version: str) -> Path:
    directory = CACHE / f"kafka-{version}"
    if not (directory / ".ok").exists():
        raise RuntimeError(f"no jars in {directory}: run tests/setup_clients.sh first")
    return directory


def java_command(*class_path_entries: Path, heap_mb: int = 256, log_level: str = "warn") -> list[str]:
    # Tools live for seconds: the first compiler tier and the serial collector start fastest on few cores.
    return [
        "java",
        f"-Xmx{heap_mb}m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Xshare:auto",
        f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}",
        "-cp",
        class_path(*class_path_entries),
    ]


_PROTOCOLS = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL"


class ApacheKafka(BrokerProcess):
    """One process that is broker and controller, as small as Apache Kafka can be run."""

    #: A full run wants the best steady speed; tests want a quick start.
    fast_start = True
    #: Beside the server's own.
    further_jars: tuple[Path, ...] = ()

    def command(self) -> list[str]:
        config = self.directory / "server.properties"
        controller_port = own_port()
        write_properties(
            config,
            {
                "process.roles": "broker,controller",
                "node.id": str(BROKER_ID),
                "controller.quorum.voters": f"{BROKER_ID}@127.0.0.1:{controller_port}",
                "listeners": f"{self.listeners},CONTROLLER://127.0.0.1:{controller_port}",
                "advertised.listeners": self.listeners,
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": _PROTOCOLS,
                "log.dirs": str(self.log_dir),
                "offsets.topic.replication.factor": "1",
                "transaction.state.log.replication.factor": "1",
                "transaction.state.log.min.isr": "1",
                **self.properties,
            },
        )
        server = jars(SERVER_VERSION)
        if not (self.log_dir / "meta.properties").exists():
            subprocess.run(
                [
                    *java_command(server),
                    "kafka.tools.StorageTool",
                    "format",
                    "-t",
                    CLUSTER_ID,
                    "-c",
                    str(config),
                ],
                check=True,
                capture_output=True,
                timeout=240,
            )
        java = java_command(server, *self.further_jars, heap_mb=768, log_level="info")
        if not self.fast_start:
            java = [flag for flag in java if flag not in ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")]
        return [*java, "kafka.Kafka", str(config)]

    def answers(self) -> bool:
        # The port opens before the broker is registered; requests would still fail then.
        return self.output.exists() and _STARTED in self.output.read_text(errors="replace")


class ToolResult(NamedTuple):
    status: int
    output: str
    errors: str


class KafkaTools:
    """The tools of one Kafka version, run one after the other inside one JVM."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            command = java_command(CACHE / f"tool-runner-{self.version}", jars(self.version))
            self._process = subprocess.Popen(
                [*command, "ToolRunner"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._process

    def run(self, tool: str, *arguments: str, seconds: float = 180) -> ToolResult:
        """The exit status and what was printed. A tool that hangs is ended with its JVM."""
        name = _EARLIER_CLASSES.get((self.version, tool)) or TOOL_CLASSES.get(tool, tool)
        if any(not argument or "\n" in argument for argument in arguments):
            raise ValueError("an argument cannot be empty or have more than one line")
        with self._lock:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            watchdog = threading.Timer(seconds, process.kill)
            watchdog.start()
            try:
                process.stdin.write("\n".join([name, *arguments, "", ""]).encode())
                process.stdin.flush()
                head = process.stdout.readline().split()
                if len(head) != 3:
                    raise RuntimeError(f"{tool} {self.version} did not end within {seconds:g} s")
                status, output_bytes, error_bytes = map(int, head)
                output = process.stdout.read(output_bytes).decode(errors="replace")
                errors = process.stdout.read(error_bytes).decode(errors="replace")
            finally:
                watchdog.cancel()
        return ToolResult(status, output, errors)

    def close(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process.stdout.close()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
