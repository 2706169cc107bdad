"""The unit for systemd: nothing in it is unknown, and little is open to whoever takes the broker over."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).resolve().parents[2] / "deploy" / "systemd" / "headrace@.service"
COMMAND = "/opt/headrace/bin/headrace"
MOST_EXPOSED = 2.0

pytestmark = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="needs systemd-analyze: only systemd knows units",
)


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=60)


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """With a command that exists here."""
    text = UNIT.read_text()
    assert COMMAND in text
    path = tmp_path / UNIT.name
    path.write_text(text.replace(COMMAND, "/bin/true"))
    return path


def exposure(path: Path) -> float:
    done = analyze("security", "--offline=true", "--no-pager", str(path))
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert found is not None, done.stdout + done.stderr
    return float(found[1])


def test_systemd_knows_every_line(unit: Path) -> None:
    done = analyze("verify", str(unit))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_line_that_systemd_does_not_know_is_told(unit: Path) -> None:
    unit.write_text(unit.read_text().replace("LimitNOFILE=", "LimitNFILE="))
    assert "LimitNFILE" in analyze("verify", str(unit)).stderr


def test_little_is_open(unit: Path) -> None:
    assert exposure(unit) < MOST_EXPOSED


def test_without_its_protection_much_would_be_open(unit: Path) -> None:
    kept, _, _ = unit.read_text().partition("CapabilityBoundingSet=")
    unit.write_text(kept)
    assert exposure(unit) > MOST_EXPOSED
