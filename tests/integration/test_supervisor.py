"""Brokers as child processes: started together, again when one dies, ended with their parent.

The brokers here are clusters of their own: what is looked at is their lives, not what they say to each other.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.process import supervisor as supervising
from headrace.broker.process.local_cluster import local_ports, local_properties
from headrace.broker.process.supervisor import BrokerSpec, SupervisionFailed, Supervisor, write_properties

SECONDS = 60.0


def specs(directory: Path, count: int, **extra: str) -> list[BrokerSpec]:
    given = local_properties(directory, local_ports(0, count), "", extra=extra)
    return [
        BrokerSpec(
            number,
            write_properties(directory / f"broker-{number}.properties", properties),
            directory / f"broker-{number}.out",
        )
        for number, properties in enumerate(given, start=1)
    ]


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(SECONDS):
            await work

    asyncio.run(limited())


async def eventually(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.02)


def listens(address: str) -> bool:
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_broker_that_dies_comes_back_where_it_was(tmp_path: Path) -> None:
    said: list[str] = []

    async def work() -> None:
        supervisor = Supervisor(specs(tmp_path, 2), say=said.append)
        bootstrap = await supervisor.start()
        addresses = bootstrap.split(",")
        assert len(addresses) == 2
        assert all(map(listens, addresses))
        first, second = supervisor.pids[1], supervisor.pids[2]
        os.kill(second, signal.SIGKILL)
        await eventually(lambda: supervisor.pids.get(2, second) != second)
        await eventually(lambda: any("serves again" in line for line in said))
        assert listens(addresses[1])
        assert supervisor.pids[1] == first
        assert supervisor.bootstrap == bootstrap
        pids = list(supervisor.pids.values())
        await supervisor.stop()
        assert not any(map(alive, pids))

    run(work())
    assert said[0] == "broker 2 ended with SIGKILL; it is started again in 0.2 s"
    assert re.fullmatch(r"broker 2 serves again at 127\.0\.0\.1:\d+", said[1])
    for number in (1, 2):
        assert (tmp_path / f"broker-{number}" / ".kafka_cleanshutdown").exists()


def test_a_broker_that_keeps_dying_is_started_ever_more_slowly(tmp_path: Path) -> None:
    said: list[str] = []

    async def work() -> None:
        supervisor = Supervisor(specs(tmp_path, 1), say=said.append)
        await supervisor.start()
        for round in range(3):
            pid = supervisor.pids[1]
            os.kill(pid, signal.SIGKILL)
            await eventually(lambda: sum("serves again" in line for line in said) > round)  # noqa: B023  awaited here
        await supervisor.stop()

    run(work())
    assert [line.rpartition(" in ")[2] for line in said if "ended" in line] == ["0.2 s", "0.4 s", "0.8 s"]


def test_one_that_cannot_start_ends_the_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    good, bad = specs(tmp_path, 2)
    bad.properties_file.write_text("broker.id=2\nlog.segment.bytes=nonsense\n")

    async def work() -> None:
        supervisor = Supervisor([good, bad], say=lambda _: None)
        with pytest.raises(SupervisionFailed, match="broker 2 ended with exit code 1 before it was ready"):
            await supervisor.start()
        assert supervisor.pids == {}

    run(work())
    assert bad.output is not None
    assert "log.segment.bytes" in bad.output.read_text()
    assert "SupervisionFailed" not in caplog.text, "whoever started it says so, in one line"


def test_brokers_stop_one_after_the_other(tmp_path: Path) -> None:
    async def work() -> None:
        supervisor = Supervisor(specs(tmp_path, 2), say=lambda _: None)
        await supervisor.start()
        first, second = supervisor.pids[1], supervisor.pids[2]
        os.kill(second, signal.SIGSTOP)  # it cannot leave yet
        stopping = asyncio.create_task(supervisor.stop())
        await asyncio.sleep(0.5)
        assert alive(first), "the first was told to stop while the second had not gone"
        supervisor.hurry()
        await eventually(lambda: not alive(first))
        assert not stopping.done()
        os.kill(second, signal.SIGCONT)
        await stopping
        assert not alive(second)

    run(work())


def test_one_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    said: list[str] = []

    async def work() -> None:
        supervisor = Supervisor(specs(tmp_path, 1), say=said.append, stop_seconds=0.3)
        await supervisor.start()
        os.kill(supervisor.pids[1], signal.SIGSTOP)
        await supervisor.stop()
        assert supervisor.pids == {}

    run(work())
    assert said == ["broker 1 did not stop within 0.3 s: killed"]


def test_the_companion_is_looked_after(tmp_path: Path) -> None:
    calls: list[float] = []

    async def work() -> None:
        supervisor = Supervisor(
            specs(tmp_path, 1), say=lambda _: None, companion=lambda: calls.append(time.monotonic())
        )
        await supervisor.start()
        await eventually(lambda: len(calls) >= 2)
        await supervisor.stop()

    run(work())


CHILD = """
import sys
from pathlib import Path
from headrace.broker.process.supervisor import BrokerSpec, run_supervisor
specs = [BrokerSpec(n, Path(p)) for n, p in enumerate(sys.argv[1:], start=1)]
sys.exit(run_supervisor(specs, on_ready=lambda text: print("ready", text, flush=True),
                        say=lambda text: print(text, flush=True)))
"""


def supervisor_process(directory: Path) -> subprocess.Popen[str]:
    files = [str(spec.properties_file) for spec in specs(directory, 2)]
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, *files], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready 127.0.0.1:")
    return process


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_supervisor_stops_all_in_order(tmp_path: Path, number: signal.Signals) -> None:
    process = supervisor_process(tmp_path)
    brokers = children(process.pid)
    assert len(brokers) == 2
    process.send_signal(number)
    process.send_signal(number)  # a keyboard and a wrapper may both send it; that is no hurry
    output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert output == "stopping\n"
    assert not any(map(alive, brokers))
    for broker in (1, 2):
        assert (tmp_path / f"broker-{broker}" / ".kafka_cleanshutdown").exists()


def test_brokers_do_not_outlive_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    process = supervisor_process(tmp_path)
    brokers = children(process.pid)
    process.kill()
    process.communicate(timeout=SECONDS)
    deadline = time.monotonic() + SECONDS
    while any(map(alive, brokers)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_broker_that_waits_for_zookeeper_can_be_told_to_stop(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(SECONDS)
        (spec,) = specs(
            tmp_path,
            1,
            **{
                "zookeeper.connect": f"127.0.0.1:{silent.getsockname()[1]}",
                "zookeeper.connection.timeout.ms": "600000",
            },
        )
        command = [sys.executable, "-m", "headrace.cli.main", "broker", "--config", str(spec.properties_file)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        with silent.accept()[0]:  # it asks, and nobody answers
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert "stopped before it was ready" in errors


def test_a_broker_that_is_retired_before_it_is_started_again_stays_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervising, "FIRST_PAUSE", 3600.0)
    said: list[str] = []

    async def work() -> None:
        supervisor = Supervisor(specs(tmp_path, 2), say=said.append)
        await supervisor.start()
        os.kill(supervisor.pids[2], signal.SIGKILL)
        await eventually(lambda: any("started again" in line for line in said))
        await supervisor.retire(2)
        await supervisor._tasks[1]
        assert set(supervisor.pids) == {1}
        await supervisor.stop()

    run(work())


def test_a_broker_that_is_retired_while_it_is_started_again_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = asyncio.create_subprocess_exec

    async def work() -> None:
        supervisor = Supervisor(specs(tmp_path, 1), say=lambda _: None)
        await supervisor.start()

        async def launch_late(*words: str, **options: Any) -> Any:
            await supervisor.retire(1)
            return await launch(*words, **options)

        monkeypatch.setattr(asyncio, "create_subprocess_exec", launch_late)
        os.kill(supervisor.pids[1], signal.SIGKILL)
        await supervisor._tasks[0]
        assert not supervisor.pids
        await supervisor.stop()

    run(work())


def test_a_companion_that_raises_is_told_and_looks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervising, "COMPANION_SECONDS", 0.01)
    said: list[str] = []
    looks: list[int] = []

    def look() -> None:
        looks.append(len(looks))
        if len(looks) < 3:
            raise RuntimeError("it cannot be looked at now")

    async def work() -> None:
        supervisor = Supervisor(specs(tmp_path, 1), say=said.append, companion=look)
        await supervisor.start()
        await eventually(lambda: len(looks) > 3)
        await supervisor.stop()

    run(work())
    assert [line for line in said if "could not be looked after" in line] == [
        "what the brokers need beside them could not be looked after:"
        " RuntimeError('it cannot be looked at now')"
    ]
