"""The image: an ordinary user, ready, nothing lost by kill -9. After `poe image`; needs root."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from release.image import STORAGE, buildah, default_tag

from tests.ports import own_port

USER = 10001
PATIENCE_S = 120.0
RECORDS = [f"record {number}" for number in range(500)]


@pytest.fixture(scope="module")
def container() -> Iterator[str]:
    name = buildah("from", default_tag())
    yield name
    buildah("rm", name)


@pytest.fixture(scope="module")
def settings(container: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(buildah("inspect", container))["Docker"]["config"]
    return found


def command(container: str, data: Path, *arguments: str) -> list[str]:
    """As the image's own user, with the volume at its place."""
    volume = f"{data}:/var/lib/headrace"
    return ["buildah", *STORAGE, "run", "--isolation", "chroot", "-v", volume, container, "--", *arguments]


def broker_pid(above: int) -> int | None:
    """The process below `above` that is the broker itself."""
    # Any thread may have started it.
    for child in [
        child
        for task in Path(f"/proc/{above}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]:
        words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        # buildah's own process has the same words behind its name; Python is what runs the script.
        if b"python" in words[0] and words[1].endswith(b"/headrace"):
            return int(child)
        found = broker_pid(int(child))
        if found is not None:
            return found
    return None


@contextmanager
def running(
    container: str, settings: dict[str, Any], data: Path, port: int, metrics: int
) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    overrides = [
        f"listeners=PLAINTEXT://127.0.0.1:{port}",
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}",
        f"headrace.metrics.listener=127.0.0.1:{metrics}",
    ]
    given = [part for one in overrides for part in ("--override", one)]
    whole = command(container, data, *settings["Entrypoint"], *settings["Cmd"], *given)
    process = subprocess.Popen(whole, stdout=subprocess.PIPE, text=True)
    pid = None
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line == f"ready bootstrap=127.0.0.1:{port}"
        pid = broker_pid(process.pid)
        assert pid is not None
        yield process, f"127.0.0.1:{port}", pid
    finally:
        if process.poll() is None:
            if pid is not None:
                os.kill(pid, signal.SIGTERM)
            else:
                process.terminate()
            process.wait(PATIENCE_S)
        process.communicate()


def run_inside(container: str, data: Path, *arguments: str, text: str = "") -> str:
    whole = command(container, data, *arguments)
    done = subprocess.run(whole, input=text, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(600)
def test_it_serves_as_an_ordinary_user_and_keeps_its_data(
    container: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    os.chown(data, USER, USER)
    port, metrics = own_port(), own_port()
    health = [part.replace(":9404", f":{metrics}") for part in settings["Healthcheck"]["Test"]]
    assert health[0] == "CMD"
    headrace = settings["Entrypoint"][0]
    with running(container, settings, data, port, metrics) as (process, bootstrap, pid):
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
        assert [line.split()[1:] for line in status if line.startswith("Uid:")] == [[str(USER)] * 4]
        run_inside(container, data, *health[1:])
        sent = "".join(f"{record}\n" for record in RECORDS)
        run_inside(container, data, headrace, "produce", "-b", bootstrap, "kept", text=sent)
        os.kill(pid, signal.SIGKILL)
        process.wait(PATIENCE_S)
    with running(container, settings, data, port, metrics) as (process, bootstrap, pid):
        wait_until_healthy(container, data, health[1:])
        from_the_first = ["consume", "-b", bootstrap, "kept", "-o", "beginning", "-e"]
        read = run_inside(container, data, headrace, *from_the_first)
        assert read.splitlines() == RECORDS
        os.kill(pid, signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    assert {path.stat().st_uid for path in data.rglob("*")} == {USER}


def wait_until_healthy(container: str, data: Path, health: list[str]) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            run_inside(container, data, *health)
            return
        except AssertionError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def test_without_a_broker_it_is_not_healthy(container: str, settings: dict[str, Any], tmp_path: Path) -> None:
    health = [part.replace(":9404", f":{own_port()}") for part in settings["Healthcheck"]["Test"]]
    with pytest.raises(AssertionError):
        run_inside(container, tmp_path, *health[1:])


def test_it_says_what_is_in_it(container: str, settings: dict[str, Any], tmp_path: Path) -> None:
    assert settings["User"] == f"{USER}:{USER}"
    assert list(settings["Volumes"]) == ["/var/lib/headrace"]
    path = "/usr/share/doc/headrace/sbom/headrace.cdx.json"
    bill = json.loads(run_inside(container, tmp_path, "cat", path))
    assert "kazoo" in {part["name"] for part in bill["components"]}
