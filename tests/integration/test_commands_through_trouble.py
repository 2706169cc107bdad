"""`headrace produce` and `headrace consume` while their broker is gone, and when somebody has had enough."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.broker_process import HEADRACE, HeadraceProcess

TOPIC = "t"
RECORD = b"x" * 99 + b"\n"
SECONDS = 60

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HeadraceProcess]:
    running = HeadraceProcess(tmp_path, {"auto.create.topics.enable": "true"}).start()
    try:
        yield running
    finally:
        running.kill()


def command(broker: HeadraceProcess, *args: str, stdin: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [HEADRACE, *args, "-b", broker.bootstrap],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )


def until(stream: IO[bytes] | None, words: str) -> str:
    """The first line with these words. The time of the whole test is the limit."""
    assert stream is not None
    while line := stream.readline().decode():
        if words in line:
            return line.rstrip()
    raise AssertionError(f"it ended without saying {words!r}")


def feed(process: subprocess.Popen[bytes], records: int) -> None:
    assert process.stdin is not None
    process.stdin.write(RECORD * records)


def printed(broker: HeadraceProcess) -> int:
    read = subprocess.run(
        [HEADRACE, "consume", TOPIC, "--exit", "-f", "%o\\n", "-b", broker.bootstrap],
        capture_output=True,
        check=True,
    )
    return len(read.stdout.splitlines())


def delivered_some(broker: HeadraceProcess, process: subprocess.Popen[bytes]) -> None:
    """Until what was fed has arrived: the input pauses, so it is sent."""
    feed(process, 1000)
    while printed(broker) < 1000:
        assert process.poll() is None


def test_producing_goes_on_when_the_broker_is_back_and_tells_of_both(broker: HeadraceProcess) -> None:
    with command(broker, "produce", TOPIC) as producing:
        delivered_some(broker, producing)
        broker.kill()
        feed(producing, 500)
        line = until(producing.stderr, "waiting: ")
        assert f":{broker.port}" in line
        assert line.endswith("; 1,000 records delivered so far")
        broker.start()
        assert until(producing.stderr, "the cluster answers again")
        _, rest = producing.communicate(timeout=SECONDS)
        assert producing.returncode == 0
        assert rest.decode().startswith(f"sent 1,500 records to {TOPIC}")
    assert printed(broker) == 1500


def test_producing_that_fails_says_how_many_arrived(broker: HeadraceProcess) -> None:
    with command(broker, "produce", TOPIC, "--timeout", "3", "--json") as producing:
        delivered_some(broker, producing)
        broker.kill()
        feed(producing, 500)
        told, said = producing.communicate(timeout=SECONDS)
        assert producing.returncode == 1
        assert json.loads(told)["records"] == 1000
        assert "delivered 1,000 records to t; 500 more were read and not acknowledged" in said.decode()
        assert "\nerror: " in said.decode()


def test_consuming_tells_that_it_waits_and_goes_on(broker: HeadraceProcess) -> None:
    with command(broker, "produce", TOPIC) as producing:
        producing.communicate(b"one\n", timeout=SECONDS)
    with command(broker, "consume", TOPIC, "--count", "2") as consuming:
        assert until(consuming.stdout, "one")
        broker.kill()
        assert f":{broker.port}" in until(consuming.stderr, "waiting: ")
        broker.start()
        assert until(consuming.stderr, "the cluster answers again")
        with command(broker, "produce", TOPIC) as producing:
            producing.communicate(b"two\n", timeout=SECONDS)
        assert until(consuming.stdout, "two")
        assert consuming.wait(SECONDS) == 0


def test_a_broker_that_hangs_is_told_too(broker: HeadraceProcess) -> None:
    with command(broker, "produce", TOPIC) as producing:
        delivered_some(broker, producing)
        broker.signal(signal.SIGSTOP)
        try:
            feed(producing, 1)
            assert "has not answered Produce" in until(producing.stderr, "waiting: ")
        finally:
            broker.signal(signal.SIGCONT)
        producing.communicate(timeout=SECONDS)
        assert producing.returncode == 0


def test_an_interrupt_at_the_terminal_ends_quietly(broker: HeadraceProcess) -> None:
    ours, theirs = pty.openpty()
    producing = subprocess.Popen(
        [HEADRACE, "produce", TOPIC, "-b", broker.bootstrap],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(theirs)
    try:
        os.write(ours, b"one\ntwo\nthree\n")
        while printed_if_any(broker) < 3:
            assert producing.poll() is None
        os.write(ours, b"\x03")  # Ctrl-C
        _, said = producing.communicate(timeout=SECONDS)
    finally:
        os.close(ours)
        producing.kill()
    assert producing.returncode == 130, said
    assert said.strip() == b"delivered 3 records to t"


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def printed_if_any(broker: HeadraceProcess) -> int:
    try:
        return printed(broker)
    except subprocess.CalledProcessError:
        return 0  # the topic is not there yet
