"""`headrace connect init` writes a connector with a test, and the test passes as it was written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.cli.connect_init import init


@pytest.mark.timeout(900)
def test_what_init_writes_passes_its_own_test(tmp_path: Path) -> None:
    folder = tmp_path / "my_connector"
    assert CliRunner().invoke(init, [str(folder)]).exit_code == 0
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "1 passed" in done.stdout
