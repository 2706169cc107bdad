"""The README's first minute, as a new user lives it: the built wheel in a fresh environment, nothing else."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.host import Stopwatch

ROOT = Path(__file__).resolve().parents[2]
A_MINUTE = 60.0


def run(command: list[str], **kw: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300, **kw)  # type: ignore[call-overload,no-any-return]  # passed through


@pytest.fixture(scope="module")
def headrace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command, installed from the wheel into an environment that has nothing else."""
    directory = tmp_path_factory.mktemp("user")
    run(["uv", "build", "--quiet", "--wheel", "--out-dir", str(directory), str(ROOT)])
    (wheel,) = directory.glob("*.whl")
    environment = directory / "venv"
    run(["uv", "venv", "--quiet", "--python", sys.executable, str(environment)])
    run(["uv", "pip", "install", "--quiet", "--python", str(environment / "bin" / "python"), str(wheel)])
    return environment / "bin" / "headrace"


def clean_environment() -> dict[str, str]:
    kept = ("PATH", "HOME", "LANG", "TMPDIR")
    return {name: os.environ[name] for name in kept if name in os.environ}


@pytest.mark.timeout(300)
def test_a_record_is_produced_and_consumed_within_a_minute(headrace: Path, tmp_path: Path) -> None:
    environment = clean_environment()
    watch = Stopwatch()
    broker = subprocess.Popen(
        [headrace, "up", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert broker.stdout is not None
        ready = re.fullmatch(r"ready bootstrap=(\S+)", broker.stdout.readline().strip())
        assert ready is not None
        bootstrap = ["-b", ready[1]]
        run([str(headrace), "produce", *bootstrap, "greetings"], input="hello\n", env=environment)
        read = run(
            [str(headrace), "consume", *bootstrap, "greetings", "-o", "beginning", "-e"], env=environment
        )
        assert read.stdout == "hello\n"
        assert watch.seconds < A_MINUTE
    finally:
        broker.send_signal(signal.SIGTERM)
        _, log = broker.communicate(timeout=30)
    assert broker.returncode == 0
    assert "Traceback" not in log


@pytest.mark.timeout(300)
def test_the_base_install_is_small(headrace: Path) -> None:
    """A broker needs no Spark, no web framework and no other client."""
    python = str(headrace.with_name("python"))
    listed = run(["uv", "pip", "list", "--quiet", "--format", "freeze", "--python", python]).stdout.split()
    names = {line.partition("==")[0].lower() for line in listed}
    assert names <= {
        "backports-zstd",
        "cffi",
        "click",
        "cramjam",
        "crc32c",
        "cryptography",
        "google-re2",
        "headrace",
        "kazoo",
        "lz4",
        "markdown-it-py",
        "mdurl",
        "prometheus-client",
        "pycparser",
        "pygments",
        "pyyaml",
        "rich",
        "structlog",
        "typing-extensions",
    }
