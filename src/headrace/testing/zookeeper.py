"""A real ZooKeeper beside the brokers: one server or an ensemble, as child processes of this one.

with ZooKeeper(directory, servers=3) as zookeeper:
    broker = start({"zookeeper.connect": zookeeper.connect})
    zookeeper.nodes[0].kill()

Each node can be killed, paused, resumed and restarted on its own, by its process id. Everything here
blocks; a caller with an event loop uses a thread.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from headrace.core.errors import HeadraceError
from headrace.log.os_disk import make_private_directories
from headrace.testing.zookeeper_jars import find_classpath, find_java

HOST = "127.0.0.1"
START_SECONDS = 180.0
STOP_SECONDS = 5.0
TICK_MS = 500
"""A session may be as short as two ticks."""
_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_PORTS = range(20_000, 32_000)
"""Below those that the kernel gives to outgoing connections. A client that tries again and again to reach
a stopped server could otherwise be given the server's own port, and be connected to itself."""
_ATTEMPTS = 3
_PAUSE_SECONDS = 5.0


class ServerTls(NamedTuple):
    """PEM files. Clients need a certificate of the same authority; there is no port without TLS."""

    keystore: Path
    """The server's key with its certificates, for HOST."""
    truststore: Path
    own: Path
    """A client's key with its certificates, to ask whether the server serves."""

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.truststore)
        context.load_cert_chain(self.own)
        return context


class ZooKeeperFailed(HeadraceError):
    """A server did not start, or ended on its own."""


def _is_stopped(pid: int) -> bool:
    """Every thread of it: T is the state behind the name, which may have spaces and brackets in it."""
    try:
        stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:
        return False  # one has just ended
    return all(stat.rpartition(")")[2].split()[0] in "TtZ" for stat in stats)


class Node:
    """One server: a directory, a port, and the process while there is one."""

    def __init__(
        self,
        number: int,
        directory: Path,
        host: str,
        port: int,
        command: list[str],
        tls: ServerTls | None = None,
    ) -> None:
        self._tls = tls
        self.number = number
        self.directory = directory
        self.host = host
        self.port = port
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise ZooKeeperFailed(f"ZooKeeper server {self.number} is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def launch(self) -> None:
        """Start the process, without waiting until it serves."""
        if self.running:
            raise ZooKeeperFailed(f"ZooKeeper server {self.number} is running already")
        with (self.directory / "server.log").open("ab") as log:
            # In a session of its own: an interrupt from the keyboard goes to the brokers, which want to
            # leave in order, and need the server for that.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o077,  # it keeps the metadata of the brokers
            )

    def restart(self, timeout: float = START_SECONDS) -> None:
        self.kill()
        self.launch()
        self.wait_ready(timeout)

    def kill(self) -> None:
        """As a crash does: nothing is said to anybody."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """The process keeps its connections and answers nothing, as in a long collection of garbage."""
        os.kill(self.pid, signal.SIGSTOP)
        # A thread stops when it runs next, and on a busy machine another may answer until then.
        deadline = time.monotonic() + _PAUSE_SECONDS
        while not _is_stopped(self.pid) and time.monotonic() < deadline:
            time.sleep(0.001)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def send(self, how: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.send_signal(signal.SIGCONT)  # a paused process hears of nothing but SIGKILL

    def _end(self, how: signal.Signals) -> None:
        self.send(how)
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def ask(self, word: str, timeout: float = 2.0) -> str:
        """The answer to one of ZooKeeper's four-letter words, such as srvr or mntr; OSError if none comes."""
        with contextlib.ExitStack() as opened:
            connection = opened.enter_context(socket.create_connection((self.host, self.port), timeout))
            if self._tls is not None:
                connection = opened.enter_context(
                    self._tls.context().wrap_socket(connection, server_hostname=self.host)
                )
            connection.sendall(word.encode())
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts).decode()

    def serves(self, timeout: float = 2.0) -> bool:
        """Whether it answers and, in an ensemble, belongs to a quorum."""
        return self.mode(timeout) is not None

    def mode(self, timeout: float = 2.0) -> str | None:
        """standalone, leader or follower; None while it does not serve."""
        return self._told("Mode", timeout)

    def zxid(self) -> int:
        """The number of the last change: it grows by one with each write."""
        told = self._told("Zxid", timeout=10.0)
        if told is None:
            raise ZooKeeperFailed(f"ZooKeeper server {self.number} does not serve")
        return int(told, 16)

    def _told(self, field: str, timeout: float) -> str | None:
        try:
            answer = self.ask("srvr", timeout)
        except OSError:
            return None
        for line in answer.splitlines():
            name, _, value = line.partition(": ")
            if name == field:
                return value
        return None

    def wait_ready(self, timeout: float = START_SECONDS) -> None:
        deadline = time.monotonic() + timeout
        # While it starts, a server takes connections that it never answers: do not wait for those.
        while not self.serves(timeout=0.3):
            if not self.running:
                raise ZooKeeperFailed(f"ZooKeeper server {self.number} has ended: {self.last_words()}")
            if time.monotonic() > deadline:
                raise ZooKeeperFailed(
                    f"ZooKeeper server {self.number} does not serve in {timeout:.0f} s: {self.last_words()}"
                )
            time.sleep(0.02)

    def last_words(self) -> str:
        log = self.directory / "server.log"
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        return f"see {log}" + (f"; it ends with: {lines[-1]}" if lines else "")


class ZooKeeper:
    """One server, or an ensemble of `servers`. Its data is in `directory`, and is kept."""

    def __init__(
        self,
        directory: str | Path,
        *,
        servers: int = 1,
        host: str = HOST,
        classpath: str | None = None,
        heap_mb: int = 256,
        tick_ms: int = TICK_MS,
        synced: bool = True,
        tls: ServerTls | None = None,
        settings: Sequence[str] = (),
    ) -> None:
        """Listens at `host`, an address of this machine. Without `synced` it survives kill -9, as before, and
        no loss of power: it does not wait for a disk that others keep busy.

        `classpath` is found by `find_classpath` if it is not given; ZooKeeperMissing if there is none.
        `settings` are further lines of zoo.cfg.
        """
        self._tls = tls
        self._settings = settings
        self.directory = Path(directory)
        self._servers = servers
        self._host = host
        self._tick_ms = tick_ms
        self._java = [
            find_java(),
            f"-Xmx{heap_mb}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",  # a server that lives for minutes never pays back the better compiler
            "-Dzookeeper.preAllocSize=4096",
            "-Dzookeeper.commitLogCount=50",  # kept in memory for followers: 500 large changes are too many
            f"-Dzookeeper.forceSync={'yes' if synced else 'no'}",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}",
            "-cp",
            classpath or find_classpath(for_tls=tls is not None),
            _MAIN,
        ]
        self.nodes: list[Node] = []

    @property
    def connect(self) -> str:
        """host:port,host:port, for zookeeper.connect; a chroot may be added."""
        return ",".join(node.address for node in self.nodes)

    def start(self, timeout: float = START_SECONDS) -> Self:
        """Returns when every server serves. On any failure nothing is left running."""
        make_private_directories(str(self.directory))
        (self.directory / "log4j2.properties").write_text(_LOG4J2)
        for attempt in range(1, _ATTEMPTS + 1):
            self._configure()
            try:
                for node in self.nodes:
                    node.launch()
                for node in self.nodes:
                    node.wait_ready(timeout)
                return self
            except BaseException as error:
                taken = any(not node.running for node in self.nodes)
                self.stop()
                # A port that was free a moment ago can be taken by now. Other ports will do.
                if not isinstance(error, ZooKeeperFailed) or not taken or attempt == _ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def stop(self) -> None:
        for node in self.nodes:
            node.send(signal.SIGTERM)  # all at once: one that has lost its quorum would try to find it
        for node in self.nodes:
            node.stop()

    def leader(self) -> Node:
        """The one that leads the ensemble, or the only one."""
        for node in self.nodes:
            if node.mode() in ("leader", "standalone"):
                return node
        raise ZooKeeperFailed("no ZooKeeper server leads")

    def _configure(self) -> None:
        ports = free_ports(self._host, self._servers * 3)
        client, quorum, election = (ports[i::3] for i in range(3))
        self.nodes = []
        for number in range(1, self._servers + 1):
            directory = self.directory / str(number)
            data = directory / "data"
            make_private_directories(str(data))
            (data / "myid").write_text(f"{number}\n")
            lines = [
                f"tickTime={self._tick_ms}",
                "initLimit=20",
                "syncLimit=10",
                f"dataDir={data}",
                *self._listening(client[number - 1]),
                "admin.enableServer=false",
                "4lw.commands.whitelist=ruok,srvr,mntr,cons,wchs",
                "maxClientCnxns=0",
                "maxSessionTimeout=60000",
                "autopurge.purgeInterval=1",
                *self._settings,
            ]
            if self._servers > 1:
                lines += [
                    f"server.{i + 1}={self._host}:{quorum[i]}:{election[i]}" for i in range(self._servers)
                ]
            file = directory / "zoo.cfg"
            file.write_text("\n".join(lines) + "\n")
            self.nodes.append(
                Node(number, directory, self._host, client[number - 1], [*self._java, str(file)], self._tls)
            )

    def _listening(self, port: int) -> list[str]:
        if self._tls is None:
            return [f"clientPort={port}", f"clientPortAddress={self._host}"]
        return [
            f"secureClientPort={port}",
            f"secureClientPortAddress={self._host}",
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
            f"ssl.keyStore.location={self._tls.keystore}",
            "ssl.keyStore.type=PEM",
            f"ssl.trustStore.location={self._tls.truststore}",
            "ssl.trustStore.type=PEM",
            "ssl.clientAuth=need",
        ]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def free_ports(host: str, count: int) -> list[int]:
    """Ports that nobody uses at this moment, and that the kernel gives to nobody else."""
    with contextlib.ExitStack() as held:
        return [port for port, _ in zip(_listening_ports(host, held), range(count), strict=False)]


def _listening_ports(host: str, held: contextlib.ExitStack) -> Iterator[int]:
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        listener = held.enter_context(socket.socket())
        try:
            listener.bind((host, port))
        except OSError:
            continue
        yield port


_LOG4J2 = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{1} %m%n
"""
